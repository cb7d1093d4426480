"""One worked example for each of AgentBoard's domains, as its harness shows an agent before a task.

The problems are our own, the smallest of seeds that no suite draws, with a shortest plan; what is observed is
played anew in the world, so that an example says nothing that the world would not.
"""

from functools import cache
from pathlib import Path

import yaml

from mneme.environments.pddl.generating import DOMAINS, SIZES, generate
from mneme.environments.pddl.world import PddlWorld
from mneme.environments.turns import Turn

FILE = Path(__file__).parent / "domains" / "examples.yaml"


@cache
def example_of(domain: str) -> str:
    """Return a task of a domain and how it was done, turn by turn; nothing for a domain without one."""
    known = next((each for each in DOMAINS if each == domain), None)
    if known is None:
        return ""
    example = yaml.safe_load(FILE.read_text(encoding="utf-8"))[known]
    world = PddlWorld(generate(known, example["seed"], SIZES[known][0]))
    told = [world.goal_text, f"At the start: {world.first_observation}"]
    for number, action in enumerate(example["plan"].split(";"), start=1):
        plain = " ".join(action.split())
        seen = world.step(plain).text
        told.append(str(Turn(number=number, agent="solver", output=plain, outcome=seen)))
    return "\n".join(told)
