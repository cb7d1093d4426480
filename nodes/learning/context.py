"""Context of learning: the team, its environment, and the models of its agents."""

from typing import Any, TypeVar

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.core.settings import read_settings
from mneme.environments.sql_tuning.records import SCHEMA_NAMES
from mneme.nodes.context import OwnedByTeam, ledger_of, responder, team_of
from mneme.nodes.shared_memory import SharesMemory
from mneme.stores.cards.card import CardSettings
from mneme.stores.cards.consolidation import ConsolidationCycle
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.records import MAX_INT


class TeamContext(OwnedByTeam):
    """The team's environment, and the model that challenges its solutions."""

    devils_advocate: str = responder("The devil's advocate's model.")
    environment: str = Field(
        "",
        description="The world where solutions are tried: sql_tuning, workspace, python_functions, "
        "shell_pipelines, a YAML file or a plugged one; empty: nowhere, the leader judges.",
        examples=["sql_tuning"],
    )
    schema_name: str = Field(
        "events",
        description="sql_tuning: the schema of the database.",
        json_schema_extra={"enum": SCHEMA_NAMES},
    )
    database_seed: int = Field(0, ge=0, le=MAX_INT, description="sql_tuning: the seed of the database.")
    rows: int = Field(60_000, ge=100, le=2_000_000, description="sql_tuning: rows of the table of facts.")
    successes_to_verify: int = Field(
        2, ge=1, description="Successes before a card may be verified; the paper names 3 (§6) and 2 (§7)."
    )

    @property
    def drawn(self) -> dict[str, Any]:
        """Return the settings from which query tuning generates its tables."""
        return self.model_dump(include={"schema_name", "database_seed", "rows"})


class LearningContext(TeamContext, SharesMemory):
    """The models of the other agents, and the number of cards that they are shown."""

    researcher: str = responder("The researcher's model.")
    leader: str = responder("The leader's model.")
    monitor: str = responder("The monitor's model.")
    recall: int = Field(5, ge=0, le=20, description="How many cards are retrieved; 0: none, no memory.")


TeamRuntime = Runtime[TeamContext]
LearningRuntime = Runtime[LearningContext]
Learning = TypeVar("Learning", bound=TeamContext)


def cards_of(runtime: Runtime[Learning]) -> KnowledgeCards:
    """Return the knowledge cards of this run's team, in the ledger behind the graph's store."""
    settings = CardSettings(successes_to_verify=runtime.context.successes_to_verify)
    return KnowledgeCards(ledger_of(runtime), team_of(runtime), settings)


async def who_answers(role: str, runtime: Runtime[Learning]) -> str:
    """Return the model of a role; for `auto` the team's tuned model, if one was promoted (§8, step 4)."""
    who: str = getattr(runtime.context, role)
    if who.strip() != "auto" or (await read_settings()).auto:  # MNEME_AUTO is the user's own choice
        return who
    return await ConsolidationCycle(ledger_of(runtime), cards_of(runtime)).serving() or who
