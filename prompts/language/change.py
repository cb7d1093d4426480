"""Signs of change: what suggests that a fact ends or replaces what a memory says, where claims are silent.

Claims compare what two texts say of one attribute word by word. People say changes more loosely: `we got
hired elsewhere`, `the rent went up to 820`. Here such a change is read off three things together: the same
people or animals are concerned (`concerns`), words of change stand in the message, and either a value of
the same type differs, or what has ended is shared, or both speak of one field of life in which a person is
in one state at a time.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompts.language import lexicon as lx
from prompts.language.attributes import Claim
from prompts.language.entities import USER, Entity, canonical, same_entity
from prompts.language.grammar import parse, sentences
from prompts.language.predicates import content, predicate_of
from prompts.language.tagging import tag
from prompts.language.values import Value, values_of
from prompts.language.words import Token, tokenize, verb_lemma

LONGEST = 4000
"""Characters of a message that are searched for words of change."""

_CORRECTING = re.compile(
    r"\b(?:actually|correction|corrected|i meant?|scratch that|turns? out|turned out|mistaken?|wrong|"
    r"mixed up|"
    r"mixing|misremembered|typo|sorry|oops|wait|nope|nah|no,|not|isn'?t|swapped|ignore what|misspoke|"
    r"rather|"
    r"to be precise|in fact|double-checked|checked again|misread)\b",
    re.IGNORECASE,
)
_CHANGING = re.compile(
    r"\b(?:now|instead|switch\w*|swap\w*|chang\w*|replac\w*|upgrad\w*|downgrad\w*|trad(?:ed|ing|e)|"
    r"mov(?:ed?|ing)|"
    r"migrat\w+|convert\w*|rewr\w+|new|these days|nowadays|lately|ended up|w(?:ent|ith) with|rather than|"
    r"no longer|anymore|used to|from now on|as of|promoted|became|become|turn(?:ed|s)|grew|(?:went|"
    r"go(?:es|ne|ing)?|"
    r"bumped|shot|put|is|'s|back|down|up) (?:up|down|to)|rais\w+|lower\w+|increas\w+|decreas\w+|cut|"
    r"dropp?\w*|"
    r"rose|risen|fell|fallen|postpon\w+|resched\w+|push\w*|delay\w*|brought|earlier|later|bump\w*|renam\w+|"
    r"transferr\w+|finally|anymore|over to|already|just turned|adopted|a (?:second|third|fourth|fifth)|"
    r"another|"
    r"by now|since|start\w*|began|overtook|beat|took over|succeed\w*|moved (?:up|back|on))\b",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"\b(?:no longer|anymore|any more|quit\w*|stop\w*|cancell?\w*|g[ai]ven? up|gave up|giving up|"
    r"br(?:oke|oken|eak|eaking) up|"
    r"split(?: up)?|divorc\w+|separat\w+|sold|sell|ditch\w*|drop(?:ped|ping)?|left|leav\w+|over|done|"
    r"off|lost|died|dead|"
    r"passed away|put down|clos(?:ed|ing)|ended|end|finished|got rid|rid|deleted|fell apart|called off|"
    r"fired|laid off|expired|"
    r"dumped|kicked|gone|don'?t|doesn'?t|can'?t|cannot|not|n't|never|without|nobody|no more|out of|"
    r"resign\w*|retir\w+|"
    r"returned|moved out|remov\w+|taken out|gave|given|donat\w+|stolen|broke|totall?ed|wrecked|crashed|"
    r"unsubscrib\w+|disband\w*|"
    r"shut|lapse\w*|"
    r"abandon\w*|scrapp?\w*|cleared|cured|healed|outgrew|outgrown|grew out|recovered|paid off|bailed|"
    r"backed out|pulled out)\b",
    re.IGNORECASE,
)
_MOVING_EVENT = re.compile(
    r"\b(?:mov\w+|postpon\w+|resched\w+|push\w*|delay\w*|brought|bump\w*|chang\w*|switch\w*|put off|"
    r"earlier|later|"
    r"instead|shift\w*|swap\w*|now)\b", re.IGNORECASE,
)  # fmt: skip

_GENERIC = (
    lx.TIME_NOUNS
    | lx.LIKING
    | lx.bag(
        "user be have do get go make take come want need thing way time lot bit put keep give let say "
        "tell think know "
        "new old good great big small first last next more less much many other another same own real "
        "name call find "
        "start begin become turn move switch change use used people man woman guy girl boy person one "
        "ago now then half "
        "number today place something everything anything nothing back still try feel see look plan "
        "favourite use "
        "work live friend pay cost spend day month year week hour minute since daily weekly monthly "
        "every each all both end stop quit "
        "can will would not no very really finally lately recently down up off out over away together "
        "like love enjoy"
    )
)
_DERIVED = {
    "subscription": "subscribe", "marriage": "marry", "married": "marry", "husband": "marry", "wife": "marry",
    "flight": "fly", "membership": "member", "employee": "employ", "allergic": "allergy", "smoker": "smoke",
    "cigarette": "smoke", "rental": "rent", "renter": "rent", "dislike": "hate", "loathe": "hate",
    "detest": "hate", "girl": "daughter", "boy": "son", "kilo": "kg", "runner": "run", "dnd": "d&d",
    "diabetic": "diabetes", "asthmatic": "asthma", "vegetarianism": "vegetarian", "medication": "medicine",
    "meds": "medicine", "major": "study", "degree": "study", "biology": "bio", "economics": "econ",
    "mathematics": "math", "maths": "math", "psychology": "psych", "chemistry": "chem", "percent": "%",
    "fiancee": "fiance", "laptop": "computer", "engagement": "engage", "graduation": "graduate",
    "born": "birthday", "teacher": "teach", "drummer": "drum", "guitarist": "guitar", "pianist": "piano",
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """Why a fact changes a memory, and which of the memory's values it replaces by which of its own."""

    rationale: str
    values: tuple[tuple[Value, Value], ...] = ()
    ending: bool = False
    partial: bool = False  # whether purpose and place stay as they were


@dataclass(frozen=True)
class _Text:
    """A text's specific words and its values."""

    text: str
    words: frozenset[str]
    values: tuple[Value, ...]

    @property
    def low(self) -> str:
        return self.text.lower()


def changed(
    fact: str, memory: str, message: str, new: Sequence[Claim], old: Sequence[Claim]
) -> Change | None:
    """Return how the fact changes the memory; nothing where the signs do not suffice."""
    one, other, said = _read(fact), _read(memory), said_about(fact, message)
    role = _other_holder(one, other, new, said)
    if role is not None:
        return role
    if not concerns(one, other, new, old):
        return None
    by_words = _other_value(one, other, said) or _displaced(one, other, said) or _ended(one, other)
    return (
        by_words
        or _other_state(one, other, _one_person(one, new, old))
        or _other_filler(one, other, said, _of_one_thing(new, old, one))
    )


@lru_cache(maxsize=256)
def _read(text: str) -> _Text:
    tokens = tag(tokenize(text))
    values = tuple(values_of(tokens))
    return _Text(text, specific(content(_outside(tokens, values))), values)


def _outside(tokens: Sequence[Token], values: Sequence[Value]) -> list[Token]:
    """Return the tokens that are part of no value; both come in the text's order."""
    kept, number = list[Token](), 0
    for token in tokens:
        while number < len(values) and values[number].end <= token.start:
            number += 1
        if number == len(values) or token.start < values[number].start:
            kept.append(token)
    return kept


def specific(lemmas: frozenset[str]) -> frozenset[str]:
    """Return the words that tell what a text is about, derived words as one."""
    kept = (lemma for lemma in lemmas if len(lemma) > 1 and lemma not in _GENERIC)
    return frozenset(root(lemma) for lemma in kept)


def root(lemma: str) -> str:
    """Return one form for a noun, verb or adjective of one family."""
    if lemma.endswith("ing") and len(lemma) > 5:
        lemma = verb_lemma(lemma)
    return _DERIVED.get(lemma, canonical(lemma))


def said_about(fact: str, message: str) -> str:
    """Return the fact with the sentence of the message that it comes from, and those beside it."""
    if len(message) > LONGEST:
        return fact
    spans = [message[start:end] for start, end in sentences(message)]
    told = set(re.findall(r"\w+", fact.lower()))
    best = max(
        range(len(spans)), key=lambda n: len(told & set(re.findall(r"\w+", spans[n].lower()))), default=0
    )
    return " ".join([fact, *spans[max(0, best - 1) : best + 2]])


# --- whom it is about ---------------------------------------------------------------------------------


def concerns(one: _Text, other: _Text, new: Sequence[Claim], old: Sequence[Claim]) -> bool:
    """Say whether fact and memory can be about the same people and animals."""
    if not new or not old:
        return False
    told, held = [claim.subject for claim in new], [claim.subject for claim in old]
    if (
        told[0].name
        and held[0].head in lx.PEOPLE
        and re.search(rf"\bis (?:called )?{re.escape(told[0].name)}\b", other.low)
    ):
        return True
    about = _is_met(held[0], told, one)
    return about and (_is_met(told[0], held, other) or _acts_on_user(told[0], one))


def _acts_on_user(entity: Entity, text: _Text) -> bool:
    """Say whether an outsider does something to the user or what is theirs (`my landlord raised my "
    "rent`)."""
    outsider = entity.owner == "user" and entity.head in lx.PEOPLE - lx.KIN and not entity.name
    return outsider and any(token.low == "user" for c in parse(text.text) for token in c.rest)


def _is_met(entity: Entity, others: Sequence[Entity], text: _Text) -> bool:
    """Say whether a text is about this person or animal too; what is the user's own needs no mention."""
    if any(same_entity(entity, other) for other in others):
        return True
    if entity.name:
        named = re.search(rf"\b{re.escape(entity.name.split()[0])}\b", text.low) is not None
        return named and not _owned_otherwise(entity, others)
    chain = [part for part in (*entity.owner.split("."), entity.head) if part not in {"", "user", "?"}]
    living = [part for part in chain if part in lx.PEOPLE | lx.ANIMALS | _NAMES or "in-law" in part]
    return all(part in text.words or part in text.low for part in living)


def _owned_otherwise(entity: Entity, others: Sequence[Entity]) -> bool:
    """Say whether somebody of that name is there who belongs to somebody else."""
    namesakes = [other for other in others if other.name and other.name == entity.name]
    return any(e.owner and entity.owner and e.owner != entity.owner for e in namesakes)


_NAMES = lx.FIRST_NAMES["male"] | lx.FIRST_NAMES["female"]


# --- ends ---------------------------------------------------------------------------------------------

_PREFACES = lx.CEASING | {"stop", "quit", "give"}


_AVERSE = re.compile(
    r"\b(?:hate|dislike|avoid|loathe|detest|allergic|intoleran|refuse|not|n't|no longer)", re.IGNORECASE
)


def _ended(one: _Text, other: _Text) -> Change | None:
    """An end is told in the fact, and what ends is what the memory is about."""
    if not _ENDING.search(one.text) or _ENDING.search(other.text) or _AVERSE.search(other.text):
        return None
    core = _ended_words(one)
    shared = core & other.words | _lower_names(core, other)
    named = any(word.capitalize() in other.text for word in shared) and len(core) <= 4
    if not shared or not (named or 2 * len(shared) > len(core)):
        return None
    return Change(f'The message tells of an end, and the memory holds "{_listed(shared)}".', ending=True)


def _ended_words(one: _Text) -> frozenset[str]:
    """Return what ends: the specific words of the clauses that tell of an end, without the words for it."""
    found = frozenset[str]()
    for clause in parse(one.text):
        words = one.text[clause.tokens[0].start : clause.end]
        if _ENDING.search(words):
            found |= specific(content([*clause.subject, *clause.group, *clause.rest]))
    return found - _ENDING_WORDS


_ENDING_WORDS = (
    lx.CEASING
    | lx.LOSING
    | lx.bag(
        "give up off cancel leave anymore longer stop quit completely totally weekend close doctor "
        "break finish lose "
        "month split divorce rid sell drop over done fully altogether entirely good finally decide"
    )
)


def _lower_names(words: frozenset[str], other: _Text) -> frozenset[str]:
    return frozenset(word for word in words if re.search(rf"\b{re.escape(word)}\b", other.low))


# --- what is named as over ------------------------------------------------------------------------------

_DISPLACING = re.compile(
    r"\b(?:not(?! only)|instead of|in place of|rather than|from|over|replac(?:ed|ing)|swapp(?:ed|ing)|"
    r"ripp(?:ed|ing) out|wip(?:ed|ing)|"
    r"ditch(?:ed|ing)|traded(?: in)?|off|left|dropped|switch(?:ed|ing) (?:from|off)|sick of|got rid of|"
    r"used to (?:be|use|have)|"
    r"no longer \w{2,12}|stopped \w{2,12}ing|than|beat) (?:an? |the |my |our |that |"
    r"old )*([\w'&-]{2,40}(?: [\w'&-]{2,40})?)",
    re.IGNORECASE,
)


_DISMISSED = re.compile(
    r"([\w'&-]{2,40}) (?:is|are|was|were) (?:fine|ok|okay|over|wrong|a typo|gone|history|no more|"
    r"out of the question)\b",
    re.IGNORECASE,
)


_ONE_BREATH = 80
"""Characters of what is said around a fact, for `no longer X` to be about what the fact puts in its place."""


def _displaced(one: _Text, other: _Text, said: str) -> Change | None:
    """The message names a word of the memory as what is no longer so, and the fact has another."""
    if not (_SWITCHING.search(said) or _CORRECTING.search(said) or _CHANGING.search(said)):
        return None
    words = [*_DISPLACING.findall(said), *_DISMISSED.findall(said)]
    named = [specific(content(tag(tokenize(phrase.lower())))) for phrase in words]
    over = frozenset[str]().union(*named) & other.words
    fresh, frame = one.words - other.words, (one.words & other.words) - over
    told = over & one.words
    explicit = frame or (_SWITCHING.search(said) and len(said) - len(one.text) < _ONE_BREATH)
    if not over or not fresh or not explicit or (told and not _SWITCHING.search(said)):
        return None
    return Change(f'The message says that "{_listed(over)}" is over or wrong.', partial=True)


# --- values -------------------------------------------------------------------------------------------


def _other_value(one: _Text, other: _Text, said: str) -> Change | None:
    """A value of the same type differs, of what both speak about."""
    pairs = tuple(_differing(_current(one), other.values, _MOVING_EVENT.search(said) is not None))
    if not pairs:
        return None
    shared = one.words & other.words | _lower_names(one.words, other)
    measured = all(old.measured for _, old in pairs)
    hinted = bool(_CHANGING.search(said) or _CORRECTING.search(said))
    foreign = one.words - other.words
    if not (shared and (hinted or not foreign)) and not (measured and hinted and not foreign):
        return None
    if len(foreign) > len(shared) + 3 and not measured:
        return None
    return Change("The same thing has another value now.", pairs)


def _current(text: _Text) -> list[Value]:
    """Return the values that a fact gives, without those it takes back (`instead of Mondays`)."""
    return [value for value in text.values if not _is_taken_back(text.text, value)]


def _is_taken_back(text: str, value: Value) -> bool:
    moved = text[: value.start].endswith("from ") and re.search(r"\bto\b", text[value.end : value.end + 40])
    return bool(moved or _TAKEN_BACK.search(text[: value.start]))


_TAKEN_BACK = re.compile(r"\b(?:instead of|rather than|not|than)(?: the| on| at)? ?$", re.IGNORECASE)


def _differing(new: Sequence[Value], old: Sequence[Value], moved: bool) -> Iterator[tuple[Value, Value]]:
    for held in old:
        same = [value for value in new if _alike(value, held)]
        when = [value for value in new if value.kind in _WHEN]
        if any(value.norm == held.norm for value in same):
            continue
        if same:
            yield same[-1], held
        elif moved and when and held.kind in _WHEN - {"clock"}:
            yield when[-1], held


def _alike(one: Value, other: Value) -> bool:
    """Say whether two values are of one type; a bare number is of any measure."""
    bare = (one.kind == "number" and other.measured) or (one.measured and other.kind == "number")
    return one.kind == other.kind or bare


_WHEN = frozenset({"date", "weekday", "clock"})


# --- fields of life -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Field:
    """A field of life in which one is in one state at a time: how memories hold it, how changes tell it."""

    name: str
    held: re.Pattern[str]
    told: re.Pattern[str]


def _field(name: str, held: str, told: str) -> _Field:
    return _Field(
        name, re.compile(rf"\b(?:{held})\b", re.IGNORECASE), re.compile(rf"\b(?:{told})\b", re.IGNORECASE)
    )


_VEHICLE = (
    r"car|truck|suv|van|minivan|pickup|motorbike|motorcycle|scooter|toyota|honda|ford|bmw|audi|mazda|"
    r"kia|hyundai|"
    r"nissan|subaru|tesla|volvo|vw|volkswagen|skoda|fiat|renault|peugeot|chevy|chevrolet|jeep|mercedes|"
    r"lexus|civic|"
    r"corolla|prius|golf|camry|outback|seat|opel|mini|citroen|dacia|porsche|vespa|harley"
)
_DWELLING = (
    r"house|home|flat|apartment|condo|farmhouse|cottage|studio|place|loft|townhouse|bungalow|dorm|houseboat"
)
_FIELDS = (
    _field(
        "home",
        r"lives? (?:in|at|near|on|with|outside)|resid\w+ in|(?:is|are) based in|rents? an?|dwell\w*|"
        r"(?:home|house|"
        r"apartment|flat) is in|is living in|hometown is now|stays? in",
        rf"(?:has |have )?(?:re)?locat\w+ to|moved (?:out|back|in|down|up|over|away|home|from|"
        rf"(?:in)?to)(?! (?:monday|tuesday|"
        rf"wednesday|thursday|friday|saturday|sunday))|settled (?:in|down in)|(?:bought|closed on|"
        rf"purchased|signed (?:a lease )?"
        rf"(?:on|for)|found|got|rent\w*) (?:an?|the|their)[\w\s-]{{0,24}} (?:{_DWELLING}) (?:in|near|"
        rf"outside)|"
        rf"(?:now|currently) (?:lives?|living)|living in|new (?:{_DWELLING}) (?:is )?in|lives? in",
    ),
    _field(
        "work",
        r"works? (?:at|for|as|in|part|full|with|from)|working (?:at|for|as)|employed|job|"
        r"is an? [\w\s-]{0,30}(?:er|or|ist|ian|"
        r"eer|nurse|cook|chef|clerk|intern|barista|cashier|analyst|assistant|architect|accountant|"
        r"lawyer|consultant) (?:at|for|in)|"
        r"is (?:unemployed|a student)|unemployed|(?:is|sits|works) (?:on|in) the [\w\s]{0,20}(?:team|"
        r"department|office)",
        r"(?:started|starting|begun|began|got|landed|accepted|took|found|has|have) (?:an? |"
        r"their )?(?:[\w-]+ ){0,3}?(?:new )?(?:job|"
        r"position|role|gig)|new (?:job|position|role|employer)|hired|got promoted|(?:was|been|"
        r"is being) promoted|promoted to|"
        r"resigned|laid off|got fired|(?:was|been|got) (?:let go|fired|laid off|made redundant)|"
        r"retired|quit (?:\w+ )?(?:job|work)|"
        r"(?:switched|transferred|moved) to (?:the )?(?:[\w-]+ ){0,2}(?:team|department|office|sales|"
        r"marketing|engineering|finance|hr|"
        r"support|design|research|operations|product)|left (?:\w+ )?(?:job|company|firm)|(?:started|"
        r"starting) (?:working )?(?:at|with|for|as)|switched (?:jobs|careers|to [\w\s]+ team)|"
        r"works? (?:at|for|as) [\w\s'-]+ (?:now|these days|instead)|now works? (?:at|for|as)|"
        r"self-employed|freelanc\w+|"
        r"(?:re)?training (?:to be|as)|(?:go|going|back|return\w*|works?) (?:back )?(?:to|in|"
        r"at) the office|started (?:their|a) own (?:business|company|"
        r"practice|studio)",
    ),
    _field(
        "relationship",
        r"single|dating|seeing|crush|girlfriend|boyfriend|married|engaged|in a relationship|partner|"
        r"fianc\w+|husband|wife|widowed|divorced",
        r"(?:got|is|are|get) (?:engaged|married|divorced|separated)|broke up|broken up|split up|"
        r"breaking up|separated|divorc\w+|"
        r"(?:is|are) (?:single|dating|done|over|seeing)|started (?:dating|seeing)|been (?:seeing|"
        r"dating)|(?:seeing|dating|met) (?:someone|somebody)|in a relationship|ended things|"
        r"called off (?:the|their) (?:wedding|engagement)|"
        r"married|proposed|said yes|dumped|tied the knot|eloped|new (?:boyfriend|girlfriend|partner)|"
        r"got back together|no longer together",
    ),
    _field(
        "vehicle",
        rf"(?:has no|(?:does not|doesn't) (?:have|own) an?) (?:{_VEHICLE})|drives? (?:an? |his |her |"
        rf"their )?[\w\s-]{{0,30}}|(?:car|truck|bike|motorcycle|van) is|(?:has|"
        rf"owns) an? [\w\s-]{{0,24}}(?:{_VEHICLE})",
        rf"(?:traded|swapped|replaced|sold|totall?ed|wrecked|upgraded|bought|purchased|leased|"
        rf"picked up|got)[\w\s'-]{{0,40}} (?:{_VEHICLE})|"
        rf"new (?:{_VEHICLE})|(?:is|are) driving an?",
    ),
    _field(
        "diet",
        r"vegetarian|vegan|pescatarian|keto|paleo|meat-eater|omnivore|low-carb|gluten-free|"
        r"does not eat (?:meat|animal)|eats (?:meat|everything)",
        r"(?:became|gone|went|go(?:es|ing)?|turned|is|are|been) (?:fully |completely |"
        r"totally )?(?:vegetarian|vegan|pescatarian|keto|paleo|"
        r"plant-based|an? (?:vegetarian|vegan|pescatarian))|(?<!not )(?<!n't )eat\w* (?:meat|fish|"
        r"chicken|bacon|dairy|eggs)(?: again)?|(?:started|began|back to) eating|off (?:meat|dairy|keto)",
    ),
    _field(
        "study",
        r"studies|studying|stud(?:y|ied) \w+ at|majors?|majoring|attends|goes to|student|enrolled|"
        r"degree in|university|college",
        r"(?:switched|changed|transferred)[\w\s'-]{0,30}(?:major|to|degree|course)|dropped out|"
        r"graduated|transferred to|"
        r"now (?:majors?|stud\w+)|new (?:major|school|university)|enrolled at",
    ),
    _field(
        "expecting",
        r"pregnant|expecting",
        r"gave birth|(?:had|have had) (?:the|their|her|a) baby|baby (?:is|was) born",
    ),
    _field(
        "a pursuit",
        r"(?:preparing|studying|training|applying|applied|waiting|saving|looking|searching|trying|"
        r"hoping|learning|planning|"
        r"working towards?) (?:for|to|on)|waiting list|(?:wants|hopes|plans|intends|needs) to|"
        r"is (?:building|writing)|in hospital",
        r"passed|failed|finished|started|began|completed|found|handed in|submitted|published|launched|"
        r"graduated|"
        r"defended|has learned|"
        r"got (?:into|in|accepted|rejected|an?|the|their)|came home|was rejected|bought|gave up|learned to",
    ),
    _field(
        "system",
        r"(?:laptop|computer|phone|pc|desktop|tablet|server|app|site|backend|frontend|project|machine|"
        r"blog|game|bot)\b.{0,30}\b(?:runs?|uses?|is an?|"
        r"is (?:hosted|written|built|deployed)|on)|uses an? [\w\s]{0,20}(?:phone|laptop|computer|"
        r"mac\w*|iphone|android|pixel|thinkpad)|"
        r"has an? [\w\s]{0,20}(?:phone|laptop|iphone|android|pixel|thinkpad)",
        r"(?:install\w*|put|switched|migrat\w+|moved|rewr\w+|ported|upgraded|replac\w+|swapp\w+|wiped|"
        r"convert\w+|ripp\w+|got a new|bought a new|"
        r"new (?:phone|laptop|computer|iphone))",
    ),
)  # fmt: skip
_NEEDS_SHARED = frozenset({"system", "study", "a pursuit"})
_OF_THINGS = frozenset({"system", "vehicle"})
_TENTATIVE = re.compile(
    r"\b(?:might|maybe|may|could|would|hopes?|hoping|wants?|thinking|considering|if|planning|plans?|"
    r"visit\w*)\b",
    re.IGNORECASE,
)


def _one_person(one: _Text, new: Sequence[Claim], old: Sequence[Claim]) -> bool:
    """Say whether both tell of one person's own state, not only of what belongs to them."""
    named = {name for claim in old[:1] for name in claim.subject.name.split()} | (
        {"user"} if old[0].subject.is_user else set()
    )
    clause = next(iter(parse(one.text)), None)
    together = clause is not None and any(token.low == "and" for token in clause.subject)
    joined = together and clause is not None and bool(named & {token.low for token in clause.subject})
    return joined or any(same_entity(f.subject, m.subject) for f in new for m in old)


def _other_state(one: _Text, other: _Text, same: bool) -> Change | None:
    """Both speak of one field of life, and the fact tells a change in it."""
    shared, fresh = _shared(one, other), one.words - other.words
    if _TENTATIVE.search(one.text) or not fresh:
        return None
    for field in _FIELDS:
        told = field.told.search(one.text)
        if told is None or not field.held.search(other.text):
            continue
        known = specific(content(tag(tokenize(told.group())))) & other.words
        if (same or field.name in _OF_THINGS) and not known and _is_in(field, shared):
            return Change(
                f"Both are about {field.name}, which the fact says has changed.",
                partial=field.name == "study",
            )
    return None


def _is_in(field: _Field, shared: frozenset[str]) -> bool:
    return bool(shared) or field.name not in _NEEDS_SHARED


def _shared(one: _Text, other: _Text) -> frozenset[str]:
    """Return what both texts speak about: specific words, names in any case, and equal values."""
    values = {f"{v.kind} {v.norm}" for v in one.values} & {f"{v.kind} {v.norm}" for v in other.values}
    return one.words & other.words | _lower_names(one.words, other) | values


def _other_filler(one: _Text, other: _Text, said: str, thing: bool) -> Change | None:
    """Most of what the memory speaks about is said again, with another filler, and as a change."""
    shared = _shared(one, other)
    fresh, gone = one.words - shared, other.words - shared
    hinted = _SWITCHING.search(said) or _CORRECTED.search(said) or (thing and _ALTERING.search(one.text))
    framed = thing or (len(shared) >= 2 and len(shared) >= len(fresh)) or _exchanges(said, shared)
    if not (hinted and framed and fresh and gone):
        return None
    return Change(f'Of "{_listed(shared)}" the fact says something else now.')


def covered(fact: str, memory: str, new: Sequence[Claim], old: Sequence[Claim]) -> bool:
    """Say whether a memory about the same people holds every telling word and value of the fact."""
    one, other = _read(fact), _read(memory)
    words = _telling(fact) - _IMPLIED
    held = {(v.kind, v.norm) for v in other.values}
    same = words <= _telling(memory) and all((v.kind, v.norm) in held for v in one.values)
    polar = bool(_DENYING.search(fact)) == bool(_DENYING.search(memory))
    return bool(words or one.values) and same and polar and concerns(one, other, new, old)


_DENYING = re.compile(
    r"\b(?:not|no|never|without|stopped|quit|hates?|dislikes?|loathes?|allergic|allergy|plans?|wants?|"
    r"used to)\b|n't",
    re.IGNORECASE,
)
_IMPLIED = lx.bag(
    "be have do get go come live reside house home work own drive take know call name really still "
    "also remember say like love enjoy use lot much very for every one"
)


@lru_cache(maxsize=256)
def _telling(text: str) -> frozenset[str]:
    """Return the roots of all words that carry meaning, days and hours included, amounts apart."""
    tokens = tag(tokenize(text))
    return frozenset(root(lemma) for lemma in content(_outside(tokens, list(values_of(tokens)))))


_SWITCHING = re.compile(
    r"\b(?:now|refinanc\w*|instead|switch\w*|swap\w*|chang\w*|replac\w*|upgrad\w*|these days|nowadays|"
    r"ended up|rather than|no longer|"
    r"anymore|from now on|took over|beat)\b", re.IGNORECASE,
)  # fmt: skip
_ALTERING = re.compile(
    r"\b(?:mov(?:ed|ing)|paint(?:ed|ing)|rewr\w+|rebuil\w+|renam\w+|dyed|remodel\w+|transferr\w+|"
    r"converted)\b",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"\b(?:correction|corrected|i meant|scratch that|turns? out|turned out|mistaken?|wrong|mixed up|"
    r"typo|not an?|ignore what|misspoke)\b",
    re.IGNORECASE,
)
_EXCHANGED = re.compile(
    r"\b(?:switch|swapp|replac|chang|refinanc|upgrad)(?:ed|ing|e|es)? "
    r"(?:to |(?:the |my |our |his |her |their |from )*([\w'-]{2,40}(?: [\w'-]{2,40})?))",
    re.IGNORECASE,
)


def _exchanges(said: str, shared: frozenset[str]) -> bool:
    """Say whether just what both speak about is exchanged (not `the locks` of the house)."""
    found = _EXCHANGED.findall(said)
    return bool(shared) and any(
        not words or specific(content(tag(tokenize(words)))) & shared for words in found
    )


def _of_one_thing(new: Sequence[Claim], old: Sequence[Claim], one: _Text) -> bool:
    """Say whether the fact is about, or does something to, the very thing that the memory describes."""
    thing = old[0].subject
    if thing.is_user or thing.name or thing.head in lx.PEOPLE | lx.ANIMALS or not thing.head:
        return False
    objects = [p.object for c in parse(one.text) if (p := predicate_of(c, USER)) is not None and p.object]
    acted = any(thing.head in content(_before_of(o.tokens)) for o in objects if o is not None)
    return acted or any(claim.subject.head == thing.head for claim in new)


def _before_of(tokens: Sequence[Token]) -> Sequence[Token]:
    return tokens[: next((n for n, token in enumerate(tokens) if token.low == "of"), len(tokens))]


# --- roles --------------------------------------------------------------------------------------------

_HELD_ROLE = re.compile(
    r"\b(?:the )?user's (?:new |current |favou?rite )?(?:[\w-]{1,30} )?([\w-]{1,30}) is (?:called |"
    r"named |still )?"
    r"([A-Z][\w.'-]{0,40}(?: [A-Z][\w.'-]{0,40}){0,4})"
)


def _other_holder(one: _Text, other: _Text, new: Sequence[Claim], said: str) -> Change | None:
    """The memory names who or what holds a role of the user's, and the fact names a new holder."""
    held = _HELD_ROLE.search(other.text)
    third = [claim.subject for claim in new if claim.subject.owner not in {"user", "", "?"}]
    if third:
        return None
    if _has_new(one, other):
        return Change("The user has somebody new in that role.")
    if held is None:
        return None
    role, name = canonical(held.group(1).lower()), held.group(2).lower().rstrip(".")
    favourite = all(re.search(r"\bfavou?rite\b", text.low) for text in (one, other))
    named = favourite or (role in (lx.PEOPLE - lx.KIN) | _ROLES and _SUCCEEDING.search(said) is not None)
    if not named or name in one.low or role not in one.words | _lemmas(one.text):
        return None
    return Change(f"The user's {role} is somebody or something else now.")


def _has_new(one: _Text, other: _Text) -> bool:
    """Say whether the user has a new lawyer where the memory has one."""
    heads = {canonical(word.lower()) for word in _NEW_HOLDER.findall(one.text)}
    return bool(heads & _SINGLE_ROLES & other.words)


_SUCCEEDING = re.compile(r"\b(?:new|now|replac\w+|took over|instead|changed|switched)\b", re.IGNORECASE)
_NEW_HOLDER = re.compile(r"\buser (?:has|got|found|hired) an? new ([\w-]{2,40})")
_SINGLE_ROLES = lx.bag(
    "boss landlord landlady lawyer doctor dentist therapist nanny vet trainer coach roommate"
)
_ROLES = lx.bag(
    "show band book film song food cuisine colour gym school bank vet doctor trainer advisor "
    "supervisor team lead leader captain editor provider"
)


def _lemmas(text: str) -> frozenset[str]:
    return frozenset(canonical(token.lemma) for token in tokenize(text))


def _listed(words: frozenset[str]) -> str:
    return " ".join(sorted(words))
