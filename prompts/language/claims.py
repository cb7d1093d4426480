"""Claims: who is said to be, have or do what, with which value, and whether only one value can be true."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from prompts.language import lexicon as lx
from prompts.language.attributes import Claim, claims_of_predicate, described
from prompts.language.entities import ANYBODY, USER, Entity, canonical, entity_of
from prompts.language.grammar import Clause, parse, phrase_before
from prompts.language.predicates import Argument, predicate_of
from prompts.language.words import Token


def claims_of(text: str) -> list[Claim]:
    """Return everything a third-person text claims."""
    return [claim for claim, _ in claims_with_clauses(parse(text))]


def claims_with_clauses(parsed: Sequence[Clause]) -> Iterator[tuple[Claim, Clause]]:
    """Yield the claims of parsed clauses, subjects carried over where clauses share them."""
    subject = USER
    for number, clause in enumerate(parsed):
        for claim in [*_of_subject(clause), *_of_roles(clause)]:
            yield replace(claim, clause=number), clause
        predicate = predicate_of(clause, subject)
        if predicate is None:
            continue
        subject = _carried(predicate.subject, subject)
        for claim in claims_of_predicate(replace(predicate, subject=subject)):
            yield replace(_owned(claim, subject), clause=number), clause
        for claim in _of_relative(clause):
            yield replace(claim, clause=number), clause


def _carried(found: Entity, before: Entity) -> Entity:
    """Keep the subject before where a pronoun points back to it."""
    return before if found.head in {"he", "she", "they", "it", "who", "which"} and not found.name else found


def _owned(claim: Claim, subject: Entity) -> Claim:
    """Read `her birthday` in a clause about Anna as Anna's."""
    open_owner = claim.subject.owner == ANYBODY and subject.owner != ANYBODY
    return replace(claim, subject=replace(claim.subject, owner=subject.key)) if open_owner else claim


def _of_subject(clause: Clause) -> Iterator[Claim]:
    """Yield what an apposition of the subject says: `Max, a golden retriever, …`."""
    commas = [n for n, token in enumerate(clause.subject) if token.text in {",", "(", "—", "–"}]
    if not commas or commas[0] + 1 >= len(clause.subject) or clause.subject[commas[0] + 1].tag == "WH":
        return
    inner = [token for token in clause.subject[commas[0] + 1 :] if token.tag != "PUNCT"]
    yield from (
        replace(claim, apposition=True)
        for claim in described(entity_of(clause.subject), Argument("", tuple(inner)), True)
    )


def _of_roles(clause: Clause) -> Iterator[Claim]:
    """Yield who a named person is to another: `the user's daughter Ines`, `Ines is the user's niece`."""
    entity = entity_of(clause.subject) if clause.subject else USER
    heads = [token for token in clause.subject if token.tag == "NN" and canonical(token.lemma) == entity.head]
    if entity.name and entity.owner and entity.head in lx.KIN and heads:
        yield _role(entity, heads[-1])
    is_be = bool(clause.verbs) and clause.verbs[-1].low in lx.BE | {"'s"}
    complement = (
        entity_of(clause.rest) if is_be and clause.rest and clause.rest[0].tag in {"DT", "PRP$"} else USER
    )
    if entity.name and complement.owner and complement.head in lx.KIN:
        head = next(t for t in clause.rest if t.tag == "NN" and canonical(t.lemma) == complement.head)
        yield replace(_role(entity, head), positive=not any(token.tag == "NEG" for token in clause.group))


def _role(entity: Entity, head: Token) -> Claim:
    value = frozenset({canonical(head.lemma)})
    who = replace(entity, head="", owner="")
    return Claim(who, "role", value, True, True, False, head.start, head.end, whole_start=head.start)


def _of_relative(clause: Clause) -> Iterator[Claim]:
    """Yield what relative clauses say about the noun before them."""
    tokens = clause.tokens
    for number, token in enumerate(tokens):
        if token.tag != "WH" or token.low not in {"who", "which", "that"} or number == 0:
            continue
        verb = next(
            (n for n in range(number + 1, min(number + 4, len(tokens))) if tokens[n].tag == "VF"), None
        )
        if verb is None or any(t.tag == "PRP" for t in tokens[number + 1 : verb]):
            continue
        antecedent = entity_of(phrase_before(tokens, number))
        if not antecedent.owner and not antecedent.is_user and antecedent.head:
            antecedent = replace(antecedent, owner=entity_of(clause.subject).key)
        inner = _inner_clause(tokens, number, verb)
        predicate = predicate_of(inner, antecedent)
        if predicate is not None:
            yield from claims_of_predicate(predicate)


def _inner_clause(tokens: Sequence[Token], number: int, verb: int) -> Clause:
    end = next(
        (n for n in range(verb + 1, len(tokens)) if tokens[n].text in {",", ")"} or tokens[n].tag == "VF"),
        len(tokens),
    )
    inner = list(tokens[number + 1 : end])
    split = next(
        (n for n, token in enumerate(inner) if token.tag not in {"VF", "V", "NEG", "RB"}), len(inner)
    )
    return Clause(tuple(tokens[number:end]), (), (), tuple(inner[:split]), tuple(inner[split:]))
