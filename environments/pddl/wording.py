"""What is said in a PDDL world: sentences for literals, forms for actions.

The domains that AgentBoard uses have sentences of their own; a literal of any other domain is said as
its name and arguments. Where AgentBoard's sentence leaves out an argument (what a hand of the barman
holds) or says another thing (that a ball carries the gripper, that a used shot is being poured), ours
says the literal: an agent could not know the state otherwise. Capitals begin a sentence, never a name
within one.
"""

from environments.pddl.compiling import Literal, Schema

SENTENCES: dict[str, dict[str, str]] = {
    "gripper": {
        "room": "{} is a room",
        "ball": "{} is a ball",
        "gripper": "{} is a gripper",
        "at-robby": "Robby is at {}",
        "at": "{} is at {}",
        "free": "{} is free",
        "carry": "{} is carried by {}",
    },
    "blockworld": {
        "on": "{} is on {}",
        "on-table": "{} is on the table",
        "clear": "{} is clear",
        "holding": "the arm holds {}",
        "arm-empty": "the arm is empty",
    },
    "barman": {
        "handempty": "{} hand is empty",
        "holding": "{} hand holds {}",
        "ontable": "{} is on the table",
        "empty": "{} is empty",
        "clean": "{} is clean",
        "contains": "{} contains {}",
        "used": "{} was used for {}",
        "dispenses": "{} dispenses {}",
        "shaker-empty-level": "the empty level of {} is {}",
        "shaker-level": "{} is filled to level {}",
        "next": "level {} comes before level {}",
        "unshaked": "{} is unshaken",
        "shaked": "{} is shaken",
        "cocktail-part1": "the first ingredient of {} is {}",
        "cocktail-part2": "the second ingredient of {} is {}",
    },
    "tyreworld": {
        "isopen": "{} is open",
        "closed": "{} is closed",
        "unlocked": "{} is unlocked",
        "have": "you have {}",
        "in": "{} is in {}",
        "loose": "nut {} is loose on hub {}",
        "tight": "nut {} is tight on hub {}",
        "on-ground": "hub {} is on the ground",
        "not-on-ground": "hub {} is off the ground",
        "inflated": "wheel {} is inflated",
        "not-inflated": "wheel {} is not inflated",
        "fastened": "hub {} is fastened",
        "unfastened": "hub {} is unfastened",
        "free": "hub {} is free",
        "on": "wheel {} is on hub {}",
        "intact": "wheel {} is intact",
    },
}
ALIASES = {"gripper-strips": "gripper", "blocksworld-4ops": "blockworld", "blocks": "blockworld"}
"""Names of domains in PDDL files, and what AgentBoard calls them."""
PARTIAL = frozenset({"barman", "tyreworld"})
"""Domains where, after step 0, only the literals that are new are shown."""

NO_EFFECT = "The action is not valid and has no effect."
ILLEGAL = f"{NO_EFFECT} Its conditions do not hold."
UNPARSED = f"{NO_EFFECT} Please check valid actions."
THOUGHT = "OK. Thinking took a step."
SATISFIED = "The goal is satisfied."


def called(domain: str) -> str:
    """Return AgentBoard's name of a domain, or the domain's own."""
    return ALIASES.get(domain, domain)


def clause(domain: str, literal: Literal) -> str:
    """Say one literal without a capital or a full stop."""
    name, *arguments = literal
    pattern = SENTENCES.get(domain, {}).get(name)
    if pattern is None or pattern.count("{}") != len(
        arguments
    ):  # another version of the domain: its own words
        return " ".join(literal)
    return pattern.format(*arguments)


def sentence(domain: str, literal: Literal) -> str:
    said = clause(domain, literal)
    return f"{said[0].upper()}{said[1:]}."


def sentences(domain: str, literals: frozenset[Literal] | set[Literal]) -> str:
    """Say literals, one sentence each, sorted."""
    return " ".join(sorted(sentence(domain, literal) for literal in literals))


def goal_text(domain: str, goal: tuple[Literal, ...]) -> str:
    wanted = sorted(clause(domain, literal) for literal in goal)
    return f"The goal is to satisfy the following conditions: {', '.join(wanted)}."


def form(schema: Schema) -> str:
    """Say how an action is written: `pick <obj> <room> <gripper>`."""
    return " ".join([schema.name, *(f"<{name.removeprefix('?')}>" for name in schema.parameters)])


def rules_of(domain: str, schema: Schema) -> str:
    """Say an action's form, what it requires, and what it changes, in the observations' own words."""
    requires = "; ".join(_in_form(domain, schema.requires)) or "nothing"
    effects = _in_form(domain, schema.adds) + [
        f"no longer {said}" for said in _in_form(domain, schema.deletes)
    ]
    return f"{form(schema)}: requires: {requires}. Effect: {'; '.join(effects)}."


def _in_form(domain: str, literals: tuple[Literal, ...]) -> list[str]:
    return [clause(domain, tuple(_marked(word) for word in literal)) for literal in literals]


def _marked(word: str) -> str:
    return f"<{word.removeprefix('?')}>" if word.startswith("?") else word
