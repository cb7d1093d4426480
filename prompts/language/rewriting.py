"""Bring a memory up to date: replace what is contradicted, append what is new, keep all else."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language import lexicon as lx
from prompts.language.attributes import Claim
from prompts.language.comparison import compare, enriches, words_of
from prompts.language.entities import USER, Entity, entity_of, same_entity
from prompts.language.grammar import Clause, parse
from prompts.language.predicates import Argument, content, is_time, predicate_of
from prompts.language.words import Token, inflect, verb_form, verb_lemma

_TURNING = lx.bag(
    "move switch change start get join become turn begin have be do go relocate quit take work live "
    "name call say tell find new old now from"
)


def rewrite(fact: str, memory: str, message: str) -> str:
    """Return the memory with the fact worked into it, one clause of the fact after the other."""
    if enriches(fact, memory):
        return fact
    pieces = _pieces(fact)
    if len(pieces) == 1:
        return _worked_in(fact, memory, message)
    result = memory
    for piece in pieces:
        if compare(piece, result, message).relation != "duplicate":
            result = _worked_in(piece, result, message)
    return result if result.strip() != memory.strip() else append(memory, fact)


def append(memory: str, fact: str) -> str:
    """Add a fact: as a further predicate of the memory's subject, or as a sentence of its own."""
    old, new = parse(memory), parse(fact)
    alone = len(new) == 1 and bool(new[0].group) and not new[0].lead
    if not alone or len(memory.rstrip().rstrip(".").split(". ")) > 1 or not _same_subject(old, new[0]):
        return f"{_ended(memory)} {fact}"
    predicate = fact[new[0].group[0].start :].rstrip(".")
    head = memory.rstrip().rstrip(".")
    return f"{head}{',' if ' and ' in head else ''} and {predicate}."


def _ended(text: str) -> str:
    stripped = text.rstrip()
    return stripped if stripped.endswith((".", "!", "?")) else f"{stripped}."


def _same_subject(old: Sequence[Clause], new: Clause) -> bool:
    subjects = [_head_entity(clause) for clause in old if clause.subject]
    if not old or any(token.tag == "WH" for token in old[-1].rest):
        return False
    found = subjects[-1] if subjects else USER
    return same_entity(found, _head_entity(new))


def _head_entity(clause: Clause) -> Entity:
    return entity_of(clause.subject)


def _in_past(memory: str) -> str:
    """Put the finite verbs of a memory in the past: whom it is about has died."""
    edits = [(verb, _past(verb)) for clause in parse(memory) for verb in clause.verbs[:1] if verb.tag == "VF"]
    for verb, past in reversed(edits):
        memory = memory[: verb.start] + past + memory[verb.end :]
    return memory


def _past(verb: Token) -> str:
    fixed = {
        "is": "was",
        "are": "were",
        "has": "had",
        "have": "had",
        "does": "did",
        "do": "did",
        "'s": " was",
        "can": "could",
    }
    if verb.low in fixed:
        return fixed[verb.low]
    return inflect(verb_lemma(verb.low), "VBD") if verb_form(verb.low) in {"VB", "VBZ"} else verb.text


# --- conflicts ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Splice:
    """A clause of the fact upon the clause of the memory that it contradicts."""

    fact: str
    memory: str
    source: Clause
    target: Clause
    told: Claim
    held: Claim
    others: tuple[tuple[Claim, Claim], ...]  # further clashes between the same clauses
    one_subject: bool
    alone: bool  # whether the memory is this clause only

    @property
    def said_in_verb(self) -> bool:
        """Say whether a value is the verb itself (`separated`), so that words cannot be exchanged."""
        return _inside(self.told, self.source) or _inside(self.held, self.target)


def _inside(claim: Claim, clause: Clause) -> bool:
    return clause.group[0].start <= claim.start <= clause.group[-1].start


def _spliced(fact: str, memory: str, clashes: Sequence[tuple[Claim, Claim]]) -> str:
    new, old = parse(fact), parse(memory)
    told, held = _best(clashes)
    if told.clause >= len(new) or held.clause >= len(old) or not old[held.clause].group:
        return append(memory, fact)
    source, target = new[told.clause], old[held.clause]
    others = tuple(
        pair for pair in clashes
        if pair != (told, held) and (pair[0].clause, pair[1].clause) == (told.clause, held.clause)
    )  # fmt: skip
    subject = next((c.subject for c in reversed(old[: held.clause + 1]) if c.subject), ())
    same = same_entity(entity_of(subject), entity_of(source.subject))
    splice = _Splice(fact, memory, source, target, told, held, others, same, len(old) == 1)
    steps = (
        _by_successor,
        _by_apposition,
        _by_arguments,
        _by_predicate,
        _by_value,
        _by_negation,
        _by_item,
        _by_removal,
        _by_force,
    )
    result = next(done for step in steps if (done := step(splice)) is not None)
    return result[:1].upper() + result[1:] if memory[:1].isupper() else result


def _best(clashes: Sequence[tuple[Claim, Claim]]) -> tuple[Claim, Claim]:
    """Prefer a clash of two values over a denial, and a special attribute over the plain predicate."""
    return max(
        clashes,
        key=lambda pair: (pair[0].positive and pair[0].attribute == pair[1].attribute,
                          not pair[1].attribute.startswith("do:"), pair[0].attribute != "any"),
    )  # fmt: skip


def _by_successor(splice: _Splice) -> str | None:
    """Put Y in the place of X after `from X to Y`."""
    predicate = predicate_of(splice.source, USER)
    if splice.told.attribute != "any" or predicate is None or predicate.argument("from") is None:
        return None
    target, held, memory = predicate.argument("to"), splice.held, splice.memory
    exact = splice.told.value == words_of(memory[held.start : held.end])
    if target is None or is_time(target) or held.apposition or not exact:
        return None
    return memory[: held.start] + splice.fact[target.start : target.end] + memory[held.end :]


def _by_apposition(splice: _Splice) -> str | None:
    """Change `Max, a golden retriever, …` where it stands; take it out where it is only denied."""
    told, held, memory = splice.told, splice.held, splice.memory
    if not held.apposition:
        return None
    if told.positive and told.end > told.start:
        return memory[: held.start] + splice.fact[told.start : told.end] + memory[held.end :]
    before, after = memory[: held.start].rstrip(" ,("), memory[held.end :].lstrip(" ,)")
    return append(f"{before} {after}", splice.fact)


def _by_arguments(splice: _Splice) -> str | None:
    """Exchange, in the same doing, the arguments that differ, and keep those the fact is silent on."""
    told, held = splice.told, splice.held
    same = (
        told.attribute == held.attribute
        and told.attribute.startswith("do:")
        and told.positive
        and held.positive
    )
    new, old = predicate_of(splice.source, USER), predicate_of(splice.target, USER)
    if not same or new is None or old is None:
        return None
    pairs = [(n, o) for n in new.arguments for o in old.arguments if n.preposition == o.preposition]
    pairs = [(n, o) for n, o in pairs if not n.lemmas <= o.lemmas]
    result = splice.memory
    for one, other in sorted(pairs, key=lambda pair: -pair[1].start):
        result = result[: other.start] + splice.fact[one.start : one.end] + result[other.end :]
    more = _missing(splice, result) if pairs else []
    if not pairs:
        return None
    end = max(pairs, key=lambda pair: pair[1].end)
    place = end[1].end + len(result) - len(splice.memory)
    return result[:place] + "".join(f" {extra}" for extra in more) + result[place:]


def _by_predicate(splice: _Splice) -> str | None:
    """Exchange the predicates where the memory's says only what is contradicted, of the same subject."""
    if not splice.one_subject or (_other_content(splice) and not splice.told.attribute.startswith("prefer:")):
        return None
    return _with_predicate(splice)


def _other_content(splice: _Splice) -> frozenset[str]:
    """Return what the memory's clause says beyond the claim that is contradicted."""
    told, held, target = splice.told, splice.held, splice.target
    rest = content(target.rest) - {token.lemma for token in target.rest if token.tag == "V"}
    lead = content([token for token in target.lead if token.tag != "RB"])
    dropped = held.value if told.positive or held.value <= told.value else told.value & held.value
    return (rest | lead) - dropped - frozenset({"old", "year"} if held.attribute == "age" else ())


def _with_predicate(splice: _Splice) -> str:
    predicate = _predicate_text(splice.fact, splice.source)
    if any(token.tag == "CC" for token in splice.target.subject):
        first, _, rest = predicate.partition(" ")
        predicate = f"{_PLURAL.get(first, first)} {rest}".strip()
    end = max(token.end for token in splice.target.tokens)
    return splice.memory[: splice.target.group[0].start] + predicate + splice.memory[end:]


_PLURAL = {"has": "have", "is": "are", "was": "were", "does": "do", "lives": "live", "works": "work"}


def _predicate_text(fact: str, source: Clause) -> str:
    """Return the fact's predicate, with its fronted time, without the old value (`from X`)."""
    text = fact[source.group[0].start : source.end]
    predicate = predicate_of(source, USER)
    for argument in predicate.arguments if predicate is not None else ():
        moved = (
            argument.preposition == "from" and predicate is not None and predicate.argument("to") is not None
        )
        if argument.preposition == "instead" or (moved and not is_time(argument)):
            text = text.replace(fact[argument.whole_start : argument.end], "")
    lead = " ".join(fact[token.start : token.end] for token in source.lead if token.tag != "PUNCT")
    opening = lead[:1].lower() + lead[1:]
    return re.sub(r"\s{2,}", " ", f"{text} {opening}").strip()


def _by_value(splice: _Splice) -> str | None:
    """Put the new values in the old ones' places, and what else the fact says after them."""
    pairs = [(splice.told, splice.held), *splice.others]
    pairs = [
        (f, m)
        for f, m in pairs
        if f.positive and m.positive and f.attribute == m.attribute and f.end > f.start
    ]
    pairs = [pair for pair in pairs if not pair[0].attribute.startswith("do:") or len(pairs) == 1]
    if not pairs or splice.said_in_verb:
        return None
    result, place = splice.memory, 0
    for told, held in sorted(pairs, key=lambda pair: -pair[1].start):
        start, words = _exchanged(splice, told, held)
        place = (
            max(place + len(words) - (held.end - start), start + len(words)) if place else start + len(words)
        )
        result = result[:start] + words + result[held.end :]
    more = _missing(splice, result)
    return result[:place] + "".join(f" {extra}" for extra in more) + result[place:]


def _exchanged(splice: _Splice, told: Claim, held: Claim) -> tuple[int, str]:
    """Return where the old value starts and the words that take its place."""
    fact, memory = splice.fact, splice.memory
    if memory[held.start : held.end].endswith("-year-old"):
        return held.start, f"{next(iter(told.value - {'old', 'year'}))}-year-old"
    opening = fact[told.whole_start : told.start].strip()
    timed = told.attribute.startswith("time:") and held.whole_start < held.start
    if timed and opening not in {"", "to", "from"}:
        return held.whole_start, fact[told.whole_start : told.end]
    return held.start, fact[told.start : told.end]


def _missing(splice: _Splice, result: str) -> list[str]:
    """Return the adjuncts of the fact that the new memory does not say yet."""
    held = words_of(result)
    predicate = predicate_of(splice.source, USER)
    arguments = predicate.arguments if predicate is not None else ()
    outdated = {"", "from", "instead", "than", ","}
    missing = [a for a in arguments if a.preposition not in outdated and a.lemmas - held - _TURNING]
    return [_extra(splice, argument) for argument in missing]


def _extra(splice: _Splice, argument: Argument) -> str:
    lasting = splice.told.attribute in {
        "residence",
        "employer",
        "occupation",
        "dwelling",
        "school",
        "partner",
    }
    words = splice.fact[argument.start : argument.end]
    return (
        f"since {words}"
        if lasting and is_time(argument)
        else splice.fact[argument.whole_start : argument.end]
    )


def _by_negation(splice: _Splice) -> str | None:
    """Deny the memory's clause as it stands where the fact denies it without details (`I'm not going`)."""
    denied = any(token.tag == "NEG" for token in splice.source.group)
    if not splice.one_subject or not denied or splice.told.value or splice.source.rest:
        return None
    group = splice.fact[splice.source.group[0].start : splice.source.group[-1].end]
    return (
        splice.memory[: splice.target.group[0].start] + group + splice.memory[splice.target.group[-1].end :]
    )


def _by_item(splice: _Splice) -> str | None:
    """Take one item out of a list such as `tea, coffee and chocolate`, and append the fact."""
    held = splice.held
    items = _items([token for token in splice.target.rest if held.start <= token.start < held.end])
    kept = [item for item in items if not content(item) & splice.told.value]
    if len(items) < 2 or not kept or len(kept) == len(items):
        return None
    words = [splice.memory[item[0].start : item[-1].end] for item in kept]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return append(splice.memory[: held.start] + text + splice.memory[held.end :], splice.fact)


def _by_removal(splice: _Splice) -> str | None:
    """Take a contradicted prepositional phrase out of a clause that says more, and append the fact."""
    held, memory = splice.held, splice.memory
    removed = memory[: held.whole_start].rstrip() + memory[held.end :]
    shrunk = parse(removed)
    if held.whole_start >= held.start or held.clause >= len(shrunk) or not shrunk[held.clause].rest:
        return None
    return append(removed, splice.fact)


def _by_force(splice: _Splice) -> str:
    """Let the fact stand for the clause: as its predicate, as the whole memory, or as a further sentence."""
    if splice.one_subject and not splice.said_in_verb:
        return _with_predicate(splice)
    return splice.fact if splice.alone else append(splice.memory, splice.fact)


def _items(tokens: Sequence[Token]) -> list[list[Token]]:
    items = [list[Token]()]
    for token in tokens:
        if token.text == "," or token.tag == "CC":
            items.append([])
        else:
            items[-1].append(token)
    return [item for item in items if item]


def _pieces(fact: str) -> list[str]:
    """Return the clauses of a fact as sentences of their own."""
    found, subject = list[str](), ""
    for clause in parse(fact):
        if clause.subject:
            subject = fact[clause.subject[0].start : clause.subject[-1].end]
        if not clause.group or not subject:
            return [fact]
        found.append(f"{subject} {fact[clause.group[0].start : clause.end]}.")
    return found if len(found) > 1 else [fact]


def _worked_in(fact: str, memory: str, message: str) -> str:
    comparison = compare(fact, memory, message)
    if comparison.relation != "conflict":
        return append(memory, fact)
    if any(told.attribute == "life" for told, _ in comparison.clashes):
        return append(_in_past(memory), fact)
    result = _spliced(fact, memory, comparison.clashes)
    return result if result.strip() != memory.strip() else append(memory, fact)


def _successor(source: Clause, told: Claim) -> Argument | None:
    """Return what comes in place of what a fact ends: `from X to Y`."""
    predicate = predicate_of(source, USER)
    if told.attribute != "any" or predicate is None or predicate.argument("from") is None:
        return None
    target = predicate.argument("to")
    return target if target is not None and not is_time(target) else None


def _value_words(memory: str, held: Claim) -> frozenset[str]:
    return words_of(memory[held.start : held.end])
