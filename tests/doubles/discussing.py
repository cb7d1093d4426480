"""A task to discuss, the graph run once, and a team of two whose every answer is in a script."""

import json
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from mneme.graphs.intrinsic_memory import builder
from mneme.library.teams.team import Team, load_team
from mneme.nodes.discussion.context import DiscussionContext
from mneme.prompts.discussion.intrinsic_memory import Contribution
from mneme.stores.discussions.discussions import Discussions, Turn
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.scripts import script

TASK = (
    "Design a data pipeline on AWS for real-time machine learning on cars: 6 camera sources in .jpg, one "
    "lidar source in .pcd.bin, 5 radar sources in .pcd. Training and inference, scalable and cheap to run."
)


def given(**more: Any) -> Any:
    return {"task": TASK, "team": "data_pipeline", "discussion_id": "d", **more}


def context(**more: Any) -> DiscussionContext:
    return DiscussionContext(**{"agents": "rules", **more})


async def discuss(
    ledger: Ledger, what: Any = None, saver: BaseCheckpointSaver[str] | None = None, **more: Any
) -> Any:
    graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "d"}}
    return await graph.ainvoke(what or given(), config, context=context(**more))


async def turns_of(ledger: Ledger, result: Any) -> list[Turn]:
    return await Discussions(ledger, "local").conversation(result["discussion_id"]).all(result["turn"])


GREENHOUSE = """Plan the climate control of a greenhouse.
- The air must stay below 28 degrees in summer.
- The sensors should work for a season without a new battery.
- Mould must be seen within a day."""


def greenhouse_team() -> dict[str, Any]:
    """Return a team of a field that rules know nothing of, led as the shipped one is."""
    team = load_team("data_pipeline").model_dump(mode="json")
    template = team["roles"][0]["memory"]
    grown = {"name": "grower", "title": "Grower", "description": "what plants need, mould, harvest"}
    wired = {"name": "electrician", "title": "Electrician", "description": "sensors, wiring, power"}
    experts = [each | {"memory": template} for each in (grown, wired)]
    others = [each for each in team["roles"] if each["name"] not in team["speakers"]["workers"]]
    speakers = team["speakers"] | {"workers": ["grower", "electrician"]}
    return team | {"name": "greenhouse", "roles": [*experts, *others], "speakers": speakers}


def with_model(team: Team, name: str, who: str) -> dict[str, Any]:
    given = team.model_dump(mode="json")
    for role in given["roles"]:
        if role["name"] == name:
            role["model"] = who
    return given


NOTES: dict[str, Any] = {"notes": ["Each fact"], "plan": "Next"}
SMALL: dict[str, Any] = {
    "name": "pair",
    "roles": [
        {"name": name, "title": name.title(), "description": "Speaks.", "memory": NOTES}
        for name in ("cook", "waiter")
    ],
    "speakers": {"kind": "round_robin", "order": ["cook", "waiter"]},
    "document": {
        "name": "MENU.json",
        "by": "cook",
        "item": "Dish",
        "item_fields": {"price": "Its price"},
        "fields": {"Days": "For how many days"},
        "ratings": {"Effort": "From 1 to 10"},
        "report": {"summary": "The menu"},
    },
}
AGREED = Contribution(reasoning="So.", message="Soup it is.", changes=False, accept=True)


def noted(plan: str, *notes: str) -> str:
    return json.dumps({"reason": "New.", "memory": {"notes": list(notes), "plan": plan}})


def menu(**more: Any) -> str:
    """Return a reply that holds the document of the small team."""
    whole = {
        "report": {"summary": "Soup."},
        "fields": {"Days": 4},
        "items": [{"name": "Soup", "price": "3 euros", "turns": [1]}],
        "ratings": {"Effort": 2},
    }
    return json.dumps(whole | more)


async def small(ledger: Ledger, name: str, said: dict[str, list[Any]], **more: Any) -> Any:
    """Discuss in the small team, whose every answer is in a script."""
    script(name, said)
    asked = given(team=SMALL, task="Agree on a menu.", discussion_id=more.pop("discussion_id", "d"))
    return await discuss(ledger, asked, agents=f"scripted:{name}", **more)
