"""Attributes: what the predicate of a clause says of its subject, by general classes of verbs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prompts.language import lexicon as lx
from prompts.language.entities import USER, Entity, canonical, entity_of, kind_of
from prompts.language.predicates import Argument, Predicate, content, grain, is_time
from prompts.language.words import Token

_COPULAS = lx.bag("be become get turn remain stay seem look feel grow go")


_UNITS = {
    "kg": "weight", "kilo": "weight", "kilogram": "weight", "lb": "weight", "lbs": "weight",
    "pound": "weight",
    "stone": "weight", "cm": "height", "foot": "height", "ft": "height", "meter": "height", "metre": "height",
}  # fmt: skip


_FUNCTIONAL = {
    "name": "name", "age": "age", "birthday": "birthday", "occupation": "occupation", "work": "occupation",
    "hometown": "origin", "address": "address", "employer": "employer",
}  # fmt: skip


_VARYING = lx.bag("change go rise drop increase fall switch climb jump")
_VARIED = lx.bag("raise lower cut reduce set bump increase change update")
_RESIDING = frozenset(["live", "reside", "stay", "dwell", "base", "settle"])


@dataclass(frozen=True)
class Claim:
    """One attribute of one subject. `single`: two different values exclude one another.

    `start` and `end` are the place of the value in the text (`whole_start` with its
    preposition), `clause` that of the clause in the parse;
    `apposition` says that the value stands in an apposition rather than in the predicate.
    """

    subject: Entity
    attribute: str
    value: frozenset[str]
    positive: bool = True
    single: bool = False
    profile: bool = False
    start: int = 0
    end: int = 0
    clause: int = 0
    apposition: bool = False
    whole_start: int = 0


def claims_of_predicate(predicate: Predicate) -> Iterator[Claim]:
    """Yield the claims of one clause: by general verb classes, then the plain predicate."""
    special = [] if predicate.planned else list(_special(predicate))
    yield from special
    yield from _times(predicate)
    if not special or predicate.verb not in _COPULAS | {"have"}:
        yield _plain(predicate)


def _plain(predicate: Predicate) -> Claim:
    """Claim that the subject does this to that."""
    attribute = f"do:{predicate.verb}"
    said = [argument for argument in predicate.arguments if argument.preposition != ","]
    value = frozenset[str]().union(*(argument.lemmas for argument in said if not is_time(argument)))
    if not value:
        value = frozenset[str]().union(*(argument.lemmas for argument in said))
    tokens = [token for argument in said if not is_time(argument) for token in argument.tokens]
    start = tokens[0].start if tokens else predicate.clause.group[-1].start
    end = tokens[-1].end if tokens else predicate.clause.end
    if predicate.planned:
        attribute = f"plan:{predicate.verb}"
    return Claim(
        predicate.subject, _tensed(predicate, attribute), value, predicate.positive,
        start=start, end=end, whole_start=start,
    )  # fmt: skip


def _tensed(predicate: Predicate, attribute: str) -> str:
    """Set apart what was so and need not be so now (`worked at Nokia`)."""
    over = predicate.past and not predicate.passive and not predicate.perfect and predicate.verb in lx.STATES
    return f"past:{attribute}" if over and not attribute.startswith("time:") else attribute


def _claim(predicate: Predicate, attribute: str, argument: Argument | None, **changes: Any) -> Claim:
    """Claim an attribute with an argument's words as its single value; `changes` are further fields."""
    place = argument if argument is not None else Argument("", predicate.clause.group)
    words = argument.lemmas if argument is not None else frozenset[str]()
    claim = Claim(predicate.subject, _tensed(predicate, attribute), words, predicate.positive, single=True)
    spot = replace(claim, start=place.start, end=place.end, whole_start=place.whole_start)
    return replace(spot, **changes)


def _special(predicate: Predicate) -> Iterator[Claim]:
    if predicate.liked is not None:
        yield _liked_doing(predicate)
        return
    for reader in (
        _being,
        _having,
        _living,
        _working,
        _studying,
        _loving,
        _liking,
        _dying,
        _named,
        _changing,
    ):
        yield from reader(predicate)


def _liked_doing(predicate: Predicate) -> Claim:
    arguments = predicate.arguments
    value = frozenset({predicate.verb}).union(*(argument.lemmas for argument in arguments))
    positive = predicate.positive == bool(predicate.liked)
    return _claim(
        predicate, "like", arguments[0] if arguments else None, single=False, positive=positive, value=value
    )


def _being(predicate: Predicate) -> Iterator[Claim]:
    """Read copulas: age, kind, name, place, state."""
    if predicate.verb not in _COPULAS | {"be back"}:
        return
    complement = predicate.object
    if predicate.verb in {"be back", "be"} and any(
        token.low == "back" for token in predicate.clause.rest[:1]
    ):
        home = _place(predicate, "in", "at")
        if home is not None and _has_name(home):
            yield _claim(predicate, "residence", home)
            return
    if complement is not None and not is_time(complement):
        for claim in described(predicate.subject, complement, predicate.positive, predicate.arguments[1:]):
            yield replace(claim, attribute=_tensed(predicate, claim.attribute))
    place = predicate.argument("in", "at", "from", "near", "outside", "on")
    if (
        place is not None
        and predicate.subject.head == "work"
        and predicate.subject.owner
        and not is_time(place)
    ):
        yield _claim(predicate, "employer", place, subject=_owner(predicate.subject.owner))
        return
    if complement is None and place is not None and not is_time(place) and predicate.verb == "be":
        yield _claim(predicate, "origin" if place.preposition == "from" else "place", place)


def described(
    subject: Entity, complement: Argument, positive: bool, others: Sequence[Argument] = ()
) -> Iterator[Claim]:
    """Claim what a copula's complement or an apposition says of its subject."""
    complement = _positive_part(complement)
    aged = next((token for token in complement.tokens if token.low.endswith("-year-old")), None)
    if aged is not None:
        years = frozenset({aged.low.removesuffix("-year-old")})
        yield Claim(subject, "age", years, positive, True, True, aged.start, aged.end, whole_start=aged.start)
    attribute, single = _attribute(subject, complement, others)
    value, end = complement.lemmas, complement.end
    target = next(
        (
            a
            for a in others
            if a.preposition in {"to", "of", "in", "at", "about", "with", "for", "on"} and not is_time(a)
        ),
        None,
    )
    if target is not None and complement.tokens[-1].tag in {"JJ", "NN", "V", "VF"} and attribute == "state":
        attribute, value, end = f"state:{' '.join(sorted(value))}", target.lemmas, target.end
    owner, attribute = _functional(subject, attribute)
    yield Claim(
        owner, attribute, value, positive, single, True, complement.start, end, whole_start=complement.start
    )
    if target is not None and attribute == "marital":
        yield Claim(
            owner,
            "partner",
            target.lemmas,
            positive,
            True,
            True,
            target.start,
            target.end,
            whole_start=target.whole_start,
        )


def _positive_part(complement: Argument) -> Argument:
    """Leave out a tail such as `, not a purebred`."""
    kept = list[Token]()
    for token in complement.tokens:
        if token.tag in {"NEG", "PUNCT"} and kept:
            break
        if token.tag not in {"NEG", "RB"} or kept:
            kept.append(token)
    return Argument(complement.preposition, tuple(kept or complement.tokens))


def _functional(subject: Entity, attribute: str) -> tuple[Entity, str]:
    """Turn `X's birthday is …` into the birthday of X."""
    if subject.owner and subject.head in _FUNCTIONAL and not subject.modifiers:
        owner = USER if subject.owner == "user" else _owner(subject.owner)
        return owner, _FUNCTIONAL[subject.head]
    if "favourite" in subject.modifiers or subject.head == "favourite":
        return subject, "is"
    return subject, attribute


def _owner(key: str) -> Entity:
    if key in {"user", "", "?"}:
        return USER
    if "." in key:
        owner, _, head = key.rpartition(".")
        return Entity(head=head, owner=owner)
    return Entity(name=key) if key not in lx.PEOPLE | lx.ANIMALS else Entity(head=key)


def _attribute(subject: Entity, complement: Argument, others: Sequence[Argument]) -> tuple[str, bool]:
    """Return which attribute a complement gives, and whether it can have one value only."""
    exclusive = _measure(subject, complement) or _value_class(complement) or _kind(subject, complement)
    if exclusive:
        return exclusive, True
    tokens = complement.tokens
    person = subject.is_user or subject.head in lx.PEOPLE or (bool(subject.name) and not subject.head)
    if all(token.tag in {"NNP", "CC"} for token in tokens):
        return ("name" if person or subject.head in lx.ANIMALS or not subject.head else "is"), True
    branded = tokens[0].low in {"a", "an"} and all(token.tag == "NNP" for token in tokens[1:])
    if branded and len(tokens) > 1 and bool(subject.name):
        return "kind", True
    if tokens[0].tag in {"DT", "PRP$"}:
        return ("is-a" if person else "is"), not person
    of_owned = not person and tokens[-1].tag in {"NN", "NNP", "CD"} and bool(subject.owner)
    return ("is", True) if tokens[0].tag == "CD" or of_owned else ("state", False)


def _is_age(subject: Entity, tokens: Sequence[Token]) -> bool:
    lows = [token.low for token in tokens]
    if "old" in lows and any(token.tag == "CD" for token in tokens):
        return True
    living = subject.is_user or bool(subject.name) or subject.head in lx.PEOPLE | lx.ANIMALS
    figures = [token for token in tokens if token.tag == "CD" and token.lemma.isdigit()]
    bare = all(
        token.tag in {"CD", "CC"} or token.low in {"now", "years", "months", "weeks"} for token in tokens
    )
    return living and bool(figures) and bare


def _is_profession(tokens: Sequence[Token]) -> bool:
    head = next((token for token in reversed(tokens) if token.tag in {"NN", "NNP"}), None)
    if head is None or tokens[0].low not in {"a", "an", "the"} or head.lemma in lx.NOT_PROFESSIONS:
        return False
    return head.lemma in lx.PROFESSIONS or (head.tag == "NN" and head.lemma.endswith(lx.PROFESSION_SUFFIXES))


def _having(predicate: Predicate) -> Iterator[Claim]:
    """Read possession: a thing, how many, and what it is called."""
    thing = predicate.object
    if predicate.verb not in {"have", "own", "get", "adopt", "buy"} or thing is None or predicate.passive:
        return
    if predicate.verb == "get" and thing.tokens[0].tag not in {"DT", "CD", "PRP$"}:
        return
    entity = entity_of(thing.tokens)
    owned = replace(entity, owner=entity.owner or predicate.subject.key)
    number = next((token.lemma for token in thing.tokens if token.tag == "CD"), "")
    yield _claim(
        predicate, f"have:{entity.head or entity.name}", thing, single=False, value=thing.lemmas - {number}
    )
    if number and predicate.verb in {"have", "own"}:
        yield _claim(
            predicate, f"count:{entity.head}", thing, value=frozenset({number}), subject=predicate.subject
        )
    if entity.name and entity.head and predicate.positive:
        named = Argument("", tuple(token for token in thing.tokens if token.low in entity.name.split()))
        yield _claim(predicate, "name", named, subject=owned, profile=True)
        yield from _kind_of_named(owned, thing)
    colour = thing.lemmas & lx.VALUE_CLASSES["colour"]
    if colour and entity.head in {"eye", "hair"}:
        yield _claim(predicate, f"colour:{entity.head}", thing, value=colour)


def _kind_of_named(owned: Entity, thing: Argument) -> Iterator[Claim]:
    """Claim the kind in `a terrier named Rocky`."""
    end = next(
        (n for n, token in enumerate(thing.tokens) if token.low in {"named", "called"} or token.tag == "NNP"),
        0,
    )
    kind = Argument("", thing.tokens[:end])
    if end and (kind_of(kind.lemmas) or kind.lemmas & lx.ANIMALS):
        yield Claim(
            owned, "kind", kind.lemmas, True, True, True, kind.start, kind.end, whole_start=kind.start
        )


def _living(predicate: Predicate) -> Iterator[Claim]:
    """Read where and with whom somebody lives, moves included; a planned move is no residence yet."""
    if predicate.planned or not (
        predicate.subject.is_user or predicate.subject.name or _is_somebody(predicate.subject)
    ):
        return
    if predicate.verb in _RESIDING:
        place = _place(predicate, "in", "at", "near", "on", "outside")
        company = predicate.argument("with")
        if place is not None:
            yield _claim(predicate, _residence(place), place)
        if company is not None:
            yield _claim(predicate, "lives-with", company)
    elif predicate.verb in {"move", "relocate", "move back", "move out"} and not predicate.progressive:
        target, source = _place(predicate, "to"), _place(predicate, "from")
        home = _place(predicate, "in", "into")
        target = home if target is None and home is not None and _has_name(home) else target
        source = predicate.object if predicate.verb == "move out" else source
        if target is not None:
            yield _claim(predicate, _residence(target), target)
        if source is not None:
            yield _claim(predicate, _residence(source), source, positive=False)


def _residence(place: Argument) -> str:
    return "dwelling" if place.tokens[0].tag in {"DT", "PRP$", "CD"} and not _has_name(place) else "residence"


def _working(predicate: Predicate) -> Iterator[Claim]:
    """Read employer and occupation, beginnings and ends included."""
    verb = predicate.verb
    employer = predicate.argument("at", "for", "with")
    role = predicate.argument("as")
    load = frozenset[str]().union(*(a.lemmas for a in predicate.arguments)) & lx.VALUE_CLASSES["workload"]
    if verb == "work" and load:
        yield _claim(predicate, "workload", None, value=load)
    if verb in {"work", "employ", "intern"} and not predicate.planned:
        if employer is not None and not is_time(employer) and _is_employer(employer):
            yield _claim(predicate, "employer", employer)
        if role is not None:
            yield _claim(predicate, "occupation", role)
    thing = predicate.object
    job = thing is not None and bool(thing.lemmas & {"work", "role"})
    if (
        verb in {"get", "land", "start", "take", "accept", "begin", "have", "find", "join"}
        and not predicate.planned
    ):
        joins = verb == "join" and thing is not None and any(token.tag == "NNP" for token in thing.tokens)
        place = thing if joins else predicate.argument("at", "with")
        if (
            (job or joins or verb == "start")
            and place is not None
            and not is_time(place)
            and _is_employer(place)
        ):
            yield _claim(predicate, "employer", place)
        if job and role is not None:
            yield _claim(predicate, "occupation", role)
    if verb == "promote" and predicate.argument("to") is not None:
        yield _claim(predicate, "occupation", predicate.argument("to"))
    yield from _leaving_work(predicate, job)


def _is_employer(place: Argument) -> bool:
    return place.tokens[0].low not in {"home", "night", "least", "first", "once"} and place.tokens[
        -1
    ].tag in {"NN", "NNP", "CD"}


def _leaving_work(predicate: Predicate, job: bool) -> Iterator[Claim]:
    verb, thing = predicate.verb, predicate.object
    left = verb in {"quit", "leave", "resign", "lose"} and (
        thing is None or job or any(t.tag == "NNP" for t in thing.tokens)
    )
    dismissed = verb in {"fire", "lay off", "retire", "dismiss", "let go"} and (
        predicate.passive or verb in {"retire", "lay"}
    )
    if not (left or dismissed) or predicate.planned:
        return
    place = predicate.argument("from", "at") or (thing if thing is not None and not job else None)
    words = place.lemmas if place is not None and not is_time(place) else frozenset[str]()
    yield _claim(predicate, "employer", None, positive=not predicate.positive, value=words)
    if verb == "retire":
        yield _claim(predicate, "employment", None, value=frozenset({"retired"}))
        yield _claim(predicate, "occupation", None, positive=False, value=frozenset())


def _studying(predicate: Predicate) -> Iterator[Claim]:
    verb, thing = predicate.verb, predicate.object
    if verb == "graduate" and not predicate.planned:
        yield _claim(predicate, "occupation", None, positive=False, value=frozenset({"student"}))
    school = predicate.argument("at", "from") if verb in {"study", "graduate", "enrol", "enroll"} else None
    if verb == "attend" and thing is not None and not is_time(thing):
        school = thing
    if school is not None and not is_time(school) and not predicate.planned:
        positive = predicate.positive and verb != "graduate"
        yield _claim(predicate, "school", school, positive=positive)
    if verb in {"study", "major"} and not predicate.planned:
        topic = predicate.argument("in") if verb == "major" else thing
        if topic is not None:
            yield _claim(predicate, "study", topic)


def _loving(predicate: Predicate) -> Iterator[Claim]:
    """Read marital status and partner."""
    verb, partner = predicate.verb, predicate.argument("to", "with") or predicate.object
    status = {"marry": "married", "divorce": "divorced", "separate": "separated"}.get(verb)
    if predicate.planned:
        return
    if status:
        yield _claim(predicate, "marital", None, value=frozenset({status}), profile=True)
    if verb in {"marry", "date"} and partner is not None and not is_time(partner):
        yield _claim(predicate, "partner", partner)
    if verb in {"break up", "split up", "split"}:
        whom = predicate.argument("with")
        words = (
            whom.lemmas if whom is not None else content(predicate.clause.subject) - {"i", "me", "we", "us"}
        )
        yield _claim(predicate, "partner", None, positive=False, value=words)


def _liking(predicate: Predicate) -> Iterator[Claim]:
    """Read likes and dislikes of things."""
    verb, thing = predicate.verb, predicate.object
    if verb in lx.LIKING | lx.DISLIKING and thing is not None:
        yield _claim(
            predicate, "like", thing, single=False, positive=predicate.positive == (verb in lx.LIKING)
        )
    other = predicate.argument("over", "to")
    if verb == "prefer" and thing is not None and other is not None and predicate.positive:
        yield _claim(predicate, f"prefer:{' '.join(sorted(thing.lemmas | other.lemmas))}", thing)
    if verb in {"stand", "bear"} and not predicate.positive and thing is not None:
        yield _claim(predicate, "like", thing, single=False, positive=False)
    if verb == "be" and thing is not None and thing.lemmas & {"fan", "lover"}:
        of = predicate.argument("of")
        yield _claim(
            predicate,
            "like",
            of or thing,
            single=False,
            value=(of or thing).lemmas - {"fan", "big", "huge", "lover"},
        )


def _dying(predicate: Predicate) -> Iterator[Claim]:
    passed = predicate.verb == "pass" and not predicate.arguments and not predicate.passive
    if predicate.verb in {"die", "pass away"} or (passed and not predicate.subject.is_user):
        yield _claim(predicate, "life", None, value=frozenset({"dead"}))


def _named(predicate: Predicate) -> Iterator[Claim]:
    thing = predicate.object
    if predicate.verb in {"call", "name", "rename", "spell"} and predicate.passive and thing is not None:
        named = Argument("", _positive_part(thing).tokens)
        owner, _ = _functional(predicate.subject, "name")
        yield _claim(predicate, "name", named, profile=True, subject=owner)
    if predicate.verb == "go" and predicate.argument("by") is not None:
        yield _claim(predicate, "name", predicate.argument("by"), profile=True)
    if predicate.verb == "bear" and predicate.passive:
        for argument in predicate.arguments:
            yield _claim(predicate, "birthday" if is_time(argument) else "birthplace", argument, profile=True)
    if predicate.verb == "weigh" and thing is not None:
        yield _claim(predicate, "weight", thing)
    if predicate.verb == "turn" and thing is not None and thing.tokens[0].tag == "CD":
        yield _claim(predicate, "age", thing, profile=True)


def _changing(predicate: Predicate) -> Iterator[Claim]:
    """Read what has ended or been replaced: `switched from X to Y`, `gave up X`, `sold X`, `instead of X`."""
    verb, thing = predicate.verb, predicate.object
    source, instead = predicate.argument("from"), predicate.argument("instead")
    if verb in {"switch", "change", "convert", "transfer", "upgrade"} and source is not None:
        yield _claim(predicate, "any", source, positive=False, single=False)
    if instead is not None:
        yield _claim(predicate, "any", instead, positive=False, single=False)
    if verb in {"cancel", "scrap", "call off", "steal", "destroy", "demolish"} and predicate.passive:
        words = predicate.subject.modifiers | {predicate.subject.head}
        owner = _owner(predicate.subject.owner)
        yield _claim(predicate, "any", None, positive=False, single=False, value=words - {""}, subject=owner)
    if verb == "get" and thing is not None and "rid" in thing.lemmas:
        yield _claim(predicate, "any", thing, positive=False, single=False, value=thing.lemmas - {"rid"})
    ends = verb in lx.CEASING | lx.LOSING or (verb == "do" and not predicate.positive)
    if ends and thing is not None and not is_time(thing) and (not predicate.passive or verb == "rid"):
        positive = predicate.positive if verb == "do" else not predicate.positive
        yield _claim(predicate, "any", thing, positive=positive, single=False)
    yield from _changing_to(predicate)


def _times(predicate: Predicate) -> Iterator[Claim]:
    """Claim when an event takes place: one event has one time of each grain."""
    event = _event(predicate)
    if event is None:
        return
    put_off = predicate.verb in {"postpone", "delay", "push", "reschedule", "move"}
    lasting = {"since", "for", "during", "from"} | (set() if put_off else {"until", "till"})
    for argument in predicate.arguments:
        if is_time(argument) and argument.preposition not in lasting:
            yield _claim(predicate, f"time:{grain(argument)}", argument, subject=event, profile=True)


def _event(predicate: Predicate) -> Entity | None:
    subject, verb = predicate.subject, predicate.verb
    thing = predicate.object
    if not (subject.is_user or subject.name or subject.head in lx.PEOPLE | lx.ANIMALS):
        return subject
    if verb in {"have", "get", "book", "schedule"} and thing is not None and not is_time(thing):
        entity = entity_of(thing.tokens)
        return replace(entity, owner=entity.owner or subject.key)
    if (verb in _COPULAS | {"bear"} and predicate.argument("up") is None) or predicate.past:
        return None
    aim = predicate.argument("to", "for") or thing
    words = aim.lemmas if aim is not None and not is_time(aim) else frozenset[str]()
    return Entity(head=f"{verb}ing", owner=subject.key, modifiers=words)


def _is_somebody(entity: Entity) -> bool:
    return entity.head in lx.PEOPLE | lx.ANIMALS


def _place(predicate: Predicate, *prepositions: str) -> Argument | None:
    """Return the place among the arguments, a proper name before a common noun."""
    found = [a for a in predicate.arguments if a.preposition in prepositions and not is_time(a)]
    return next(
        (a for a in found if any(token.tag == "NNP" for token in a.tokens)), found[0] if found else None
    )


def _has_name(place: Argument) -> bool:
    return any(token.tag == "NNP" for token in place.tokens)


def _changing_to(predicate: Predicate) -> Iterator[Claim]:
    """Read `X has changed to Y`, `X went up to Y`, `X was raised to Y`, and of places `X moved to Y`."""
    verb, target = predicate.verb.split()[0], predicate.argument("to", "into")
    subject = predicate.subject
    thing = not (subject.is_user or subject.name or _is_somebody(subject))
    if not thing or target is None or is_time(target):
        return
    if verb in {"move", "relocate"} and not predicate.planned:
        yield _claim(predicate, "place", target)
    elif verb in _VARYING or (predicate.passive and verb in _VARIED):
        owner, attribute = _functional(subject, "is")
        yield _claim(predicate, attribute, target, subject=owner, profile=True)


def _measure(subject: Entity, complement: Argument) -> str:
    """Return age, height or weight where a complement measures one of them."""
    figures = [token for token in complement.tokens if token.tag == "CD"]
    if _is_age(subject, complement.tokens):
        return "age"
    if any("'" in token.low for token in figures):
        return "height"
    return next((_UNITS[unit] for unit in sorted(complement.lemmas) if unit in _UNITS), "") if figures else ""


def _value_class(complement: Argument) -> str:
    """Return the class of values that exclude one another to which a complement belongs."""
    common = frozenset(canonical(token.lemma) for token in complement.tokens if token.tag != "NNP")
    for name, members in lx.VALUE_CLASSES.items():
        words = complement.lemmas if name == "religion" else common
        if words & members and not (name == "colour" and kind_of(complement.lemmas)):
            return name
    return ""


def _kind(subject: Entity, complement: Argument) -> str:
    """Return kind for an animal or breed, occupation for a profession."""
    lemmas = complement.lemmas
    animal = subject.head in lx.ANIMALS and complement.tokens[0].low in {"a", "an"}
    if animal or kind_of(lemmas) or lemmas & lx.ANIMALS:
        return "kind"
    return "occupation" if _is_profession(complement.tokens) else ""
