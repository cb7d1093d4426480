"""Bring a memory up to date: replace what is contradicted, append what is new, keep all else."""

import re
from collections.abc import Sequence

from prompts.language import lexicon as lx
from prompts.language.claims import Argument, Claim, content, is_time, predicate_of
from prompts.language.comparison import compare, enriches, words_of
from prompts.language.entities import USER, Entity, entity_of, same_entity
from prompts.language.grammar import Clause, parse
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
        if not words_of(piece) <= words_of(result):
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


def _spliced(fact: str, memory: str, clashes: Sequence[tuple[Claim, Claim]]) -> str:
    new, old = parse(fact), parse(memory)
    told, held = _best(clashes)
    if told.clause >= len(new) or held.clause >= len(old):
        return append(memory, fact)
    source, target = new[told.clause], old[held.clause]
    successor = _successor(source, told)
    if successor is not None and not held.apposition and told.value == _value_words(memory, held):
        return memory[: held.start] + fact[successor.start : successor.end] + memory[held.end :]
    if held.apposition:
        return _in_apposition(fact, memory, told, held)
    if _replaces_predicate(source, target, told, held, old):
        return _with_predicate(memory, target, _predicate_text(fact, source))
    if told.positive and held.positive and told.attribute == held.attribute and told.end > told.start:
        return _with_value(fact, memory, told, held)
    return _without_value(fact, memory, told, held, target)


def _best(clashes: Sequence[tuple[Claim, Claim]]) -> tuple[Claim, Claim]:
    """Prefer a clash of two values over one with a denial, and a special attribute over the plain predicate."""
    return max(
        clashes,
        key=lambda pair: (pair[0].positive and pair[0].attribute == pair[1].attribute,
                          not pair[1].attribute.startswith("do:"), pair[0].attribute != "any"),
    )  # fmt: skip


def _replaces_predicate(
    source: Clause, target: Clause, told: Claim, held: Claim, old: Sequence[Clause]
) -> bool:
    """Say whether the memory's clause says nothing but what is contradicted, of the same subject."""
    subject = next((c.subject for c in reversed(old[: old.index(target) + 1]) if c.subject), ())
    same = same_entity(entity_of(subject), entity_of(source.subject))
    return same and not _other_content(target, told, held)


def _other_content(target: Clause, told: Claim, held: Claim) -> frozenset[str]:
    """Return what the memory's clause says beyond the claim that is contradicted."""
    rest = content(target.rest) - {token.lemma for token in target.rest if token.tag == "V"}
    lead = content([token for token in target.lead if token.tag != "RB"])
    dropped = (
        held.value if told.positive or held.value <= told.value or not told.value else told.value & held.value
    )
    return (rest | lead) - dropped - frozenset({"old", "year"} if held.attribute == "age" else ())


def _predicate_text(fact: str, source: Clause) -> str:
    """Return the fact's predicate, without the old value (`from Berlin`)."""
    text = fact[source.group[0].start : source.end]
    predicate = predicate_of(source, USER)
    for argument in predicate.arguments if predicate is not None else ():
        if (
            argument.preposition == "from"
            and predicate is not None
            and predicate.argument("to") is not None
            and not is_time(argument)
        ):
            text = text.replace(fact[argument.whole_start : argument.end], "")
    return re.sub(r"\s{2,}", " ", text).strip()


def _with_predicate(memory: str, target: Clause, predicate: str) -> str:
    end = max(token.end for token in target.tokens)
    return memory[: target.group[0].start] + predicate + memory[end:]


def _in_apposition(fact: str, memory: str, told: Claim, held: Claim) -> str:
    if told.positive and told.end > told.start:
        return memory[: held.start] + fact[told.start : told.end] + memory[held.end :]
    before, after = (
        memory[: held.start].rstrip().rstrip(",(").rstrip(),
        memory[held.end :].lstrip().lstrip(",)").lstrip(),
    )
    return append(f"{before} {after}", fact)


def _with_value(fact: str, memory: str, told: Claim, held: Claim) -> str:
    """Put the new value in the old one's place, and the rest of what the fact says after it."""
    whole = (
        told.attribute.startswith("time:") and told.whole_start < told.start and held.whole_start < held.start
    )
    start, words = (
        (held.whole_start, fact[told.whole_start : told.end])
        if whole
        else (held.start, fact[told.start : told.end])
    )
    if memory[held.start : held.end].endswith("-year-old"):
        words = f"{next(iter(told.value - {'old', 'year'}), words)}-year-old"
    result = memory[:start] + words + memory[held.end :]
    more = _missing(fact, result, told)
    place = start + len(words)
    return result[:place] + "".join(f" {extra}" for extra in more) + result[place:]


def _missing(fact: str, result: str, told: Claim) -> list[str]:
    """Return the arguments of the fact that the new memory does not say yet."""
    held = words_of(result)
    clauses = parse(fact)
    predicate = predicate_of(clauses[told.clause], USER) if told.clause < len(clauses) else None
    if predicate is None:
        return []
    missing = [a for a in predicate.arguments if a.preposition != "from" and a.lemmas - held - _TURNING]
    return [_extra(fact, argument, told) for argument in missing if not _is_object(argument)]


def _is_object(argument: Argument) -> bool:
    return argument.preposition == ""


def _extra(fact: str, argument: Argument, told: Claim) -> str:
    lasting = told.attribute in {
        "residence",
        "employer",
        "occupation",
        "dwelling",
        "school",
        "partner",
        "marital",
    }
    words = fact[argument.start : argument.end]
    return f"since {words}" if lasting and is_time(argument) else fact[argument.whole_start : argument.end]


def _without_value(fact: str, memory: str, told: Claim, held: Claim, target: Clause) -> str:
    """Take the contradicted words out of a clause that says more, and append the fact."""
    listed = _without_item(memory, told, held, target)
    if listed is not None:
        return append(listed, fact)
    removed = memory[: held.whole_start].rstrip() + memory[held.end :]
    shrunk = parse(removed)
    if held.clause < len(shrunk) and shrunk[held.clause].rest and held.whole_start < held.start:
        return append(removed, fact)
    return _with_predicate(memory, target, _predicate_text(fact, parse(fact)[told.clause]))


def _without_item(memory: str, told: Claim, held: Claim, target: Clause) -> str | None:
    """Take one item out of a list such as `tea, coffee and chocolate`; nothing where it is in no list."""
    tokens = [token for token in target.rest if held.start <= token.start < held.end]
    items = _items(tokens)
    kept = [item for item in items if not content(item) & told.value]
    if len(items) < 2 or not kept or len(kept) == len(items):
        return None
    words = [memory[item[0].start : item[-1].end] for item in kept]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return memory[: held.start] + text + memory[held.end :]


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
