"""Entities and relations of a memory, as flat strings for search and display."""

from prompts.language.entities import USER
from prompts.language.grammar import Clause, parse
from prompts.language.predicates import predicate_of
from prompts.language.words import Token


def entities_of(content: str) -> list[str]:
    """Return the proper names in a memory, in order, each once."""
    found, current = list[str](), list[Token]()
    for clause in parse(content):
        for token in [*clause.tokens, None]:
            if token is not None and token.tag == "NNP":
                current.append(token)
            elif current:
                found.append(content[current[0].start : current[-1].end])
                current = []
    return list(dict.fromkeys(found))


def relations_of(content: str) -> list[str]:
    """Return `subject | relation | object` for each clause that has all three."""
    found, subject = list[str](), "the user"
    for clause in parse(content):
        subject = _text(content, clause.subject) or subject
        if clause.group and clause.rest and predicate_of(clause, USER) is not None:
            found.append(_relation(content, subject, clause))
    return found


def _relation(content: str, subject: str, clause: Clause) -> str:
    relation, rest = list(clause.group), list(clause.rest)
    while rest and (rest[0].tag in {"IN", "TO"} or (rest[0].tag == "DT" and rest[0].low in {"a", "an"})):
        relation.append(rest.pop(0))
    if not rest:
        relation, rest = list(clause.group), list(clause.rest)
    return " | ".join((subject, _text(content, relation), _text(content, rest)))


def _text(content: str, tokens: list[Token] | tuple[Token, ...]) -> str:
    return content[tokens[0].start : tokens[-1].end] if tokens else ""
