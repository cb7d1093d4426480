"""One worked example for each of AgentBoard's domains, as its harness shows an agent before a task.

The problems are our own, the smallest of seeds that no suite draws, with a shortest plan; what is observed is
played anew in the world, so that an example says nothing that the world would not.
"""

from functools import cache

from mneme.environments.pddl.generating import SIZES, Domain, generate
from mneme.environments.pddl.world import PddlWorld
from mneme.environments.turns import Turn

SEEDS: dict[str, int] = {"gripper": 999_999, "blockworld": 999_999, "barman": 999_997, "tyreworld": 999_999}
PLANS: dict[str, str] = {
    "gripper": """
        pick ball1 rooma left; pick ball2 rooma right; move rooma roomb; drop ball1 roomb left;
        drop ball2 roomb right; move roomb rooma; pick ball3 rooma left; pick ball4 rooma right;
        move rooma roomb; drop ball3 roomb left; drop ball4 roomb right""",
    "blockworld": "unstack b1 b3; stack b1 b2; check valid actions; pickup b3; stack b3 b1",
    "barman": """
        grasp left shot2; fill-shot shot2 ingredient1 left right dispenser1;
        pour-shot-to-clean-shaker shot2 ingredient1 shaker1 left l0 l1;
        clean-shot shot2 ingredient1 left right; fill-shot shot2 ingredient2 left right dispenser2;
        grasp right shaker1; pour-shot-to-used-shaker shot2 ingredient2 shaker1 left l1 l2;
        leave left shot2; shake cocktail4 ingredient2 ingredient1 shaker1 right left;
        pour-shaker-to-shot cocktail4 shot1 right shaker1 l2 l1""",
    "tyreworld": """
        open boot; fetch jack boot; fetch pump boot; fetch r1 boot; fetch wrench boot; inflate r1;
        loosen nuts1 the-hub1; jack-up the-hub1; undo nuts1 the-hub1; remove-wheel w1 the-hub1;
        put-away w1 boot; put-on-wheel r1 the-hub1""",
}


@cache
def example_of(domain: str) -> str:
    """Return a task of a domain and how it was done, turn by turn; nothing for a domain without one."""
    if domain not in PLANS:
        return ""
    known: Domain = domain  # type: ignore[assignment]
    world = PddlWorld(generate(known, SEEDS[domain], SIZES[known][0]))
    told = [world.goal_text, f"At the start: {world.first_observation}"]
    for number, action in enumerate(PLANS[domain].split(";"), start=1):
        plain = " ".join(action.split())
        seen = world.step(plain).text
        told.append(str(Turn(number=number, agent="solver", output=plain, outcome=seen)))
    return "\n".join(told)
