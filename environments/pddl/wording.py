"""The texts of a PDDL world: sentences for literals, forms for actions.

The domains that AgentBoard uses have sentences of their own; a literal of any other domain is said as
its name and arguments. Where AgentBoard's sentence leaves out an argument (what a hand of the barman
holds) or says another thing (that a ball carries the gripper, that a used shot is being poured), ours
says the literal: an agent could not know the state otherwise. Capitals begin a sentence, never a name
within one.
"""

from functools import cache
from pathlib import Path

import yaml

from mneme.environments.pddl.compiling import CompiledProblem, Literal, Schema

ALIASES = {"gripper-strips": "gripper", "blocksworld-4ops": "blockworld", "blocks": "blockworld"}
"""Names of domains in PDDL files, and what AgentBoard calls them."""
PARTIAL = frozenset({"barman", "tyreworld"})
"""Domains where, after step 0, only the literals that are new are shown."""

UNTYPED = "object"
"""The type of all objects if a domain declares no types."""
NO_EFFECT = "The action is not valid and has no effect."
ILLEGAL = f"{NO_EFFECT} Its conditions do not hold."
UNPARSED = f"{NO_EFFECT} Please check valid actions."
THINKING_STEP = "OK. Thinking took a step."
SATISFIED = "The goal is satisfied."


@cache
def _sentences() -> dict[str, dict[str, str]]:
    """Return the sentences for literals of AgentBoard's domains, by domain and name."""
    file = Path(__file__).parent / "domains" / "sentences.yaml"
    read: dict[str, dict[str, str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read


def called(domain: str) -> str:
    """Return AgentBoard's name of a domain, or the domain's own."""
    return ALIASES.get(domain, domain)


def clause(domain: str, literal: Literal) -> str:
    """Return one literal as a clause, without a capital or a full stop."""
    name, *arguments = literal
    pattern = _sentences().get(domain, {}).get(name)
    if pattern is None or pattern.count("{}") != len(arguments):  # another version of the domain
        return " ".join(literal)
    return pattern.format(*arguments)


def sentence(domain: str, literal: Literal) -> str:
    said = clause(domain, literal)  # not `capitalize`, which would make the other letters small
    return f"{said[0].upper()}{said[1:]}."


def sentences(domain: str, literals: frozenset[Literal] | set[Literal]) -> str:
    """Return literals as sorted sentences."""
    return " ".join(sorted(sentence(domain, literal) for literal in literals))


def goal_text(domain: str, goal: tuple[Literal, ...]) -> str:
    return f"The goal is to satisfy the following conditions: {sentences(domain, set(goal))}"


def form(schema: Schema) -> str:
    """Return the form of an action: `pick <obj> <room> <gripper>`."""
    return " ".join([schema.name, *map(_marked, schema.parameters)])


def manual(domain: str, compiled: CompiledProblem) -> str:
    """Return the objects, and each action's form, conditions and effects in the words of observations."""
    blocks = [_block(domain, compiled, schema) for schema in compiled.schemas.values()]
    return "\n".join([f"Objects: {_objects(compiled)}", "Actions:", *blocks])


def _objects(compiled: CompiledProblem) -> str:
    by_kind: dict[str, list[str]] = {}
    for name, kind in sorted(compiled.kinds.items()):
        by_kind.setdefault(kind, []).append(name)
    if by_kind.keys() == {UNTYPED}:
        return ", ".join(by_kind[UNTYPED])
    return "; ".join(f"{', '.join(names)} ({kind})" for kind, names in sorted(by_kind.items()))


def _block(domain: str, compiled: CompiledProblem, schema: Schema) -> str:
    typed = [pair for pair in zip(schema.parameters, schema.types, strict=True) if pair[1] != UNTYPED]
    described = []
    for name, kind in typed:  # by the types that its objects are declared with
        own = sorted({compiled.kinds[each] for each in compiled.objects[kind]}) or [kind]
        either = " or ".join(f"{'an' if each[0] in 'aeiou' else 'a'} {each}" for each in own)
        described.append(f"{_marked(name)} is {either}")
    lines = {
        "where": "; ".join(described),
        "needs": _in_form(domain, schema.requires),
        "makes true": _in_form(domain, schema.adds),
        "makes untrue": _in_form(domain, schema.deletes),
    }
    return "\n".join([f"- {form(schema)}", *(f"  {name}: {said}" for name, said in lines.items() if said)])


def _in_form(domain: str, literals: tuple[Literal, ...]) -> str:
    marked = [(name, *map(_marked, words)) for name, *words in literals]
    return " ".join(sentence(domain, literal) for literal in marked)


def _marked(word: str) -> str:
    return f"<{word.removeprefix('?')}>" if word.startswith("?") else word
