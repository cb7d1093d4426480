"""What a run's context decides: whose memory it is, who answers, how much is recalled.

Plain strings and numbers with descriptions, so that Studio and the API can edit them.
"""

from typing import Any, Literal, TypeVar

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from mneme.errors import BadInput
from stores.base_store import LedgerStore
from stores.card_rules import CardSettings
from stores.inbox import Inbox
from stores.knowledge_cards import KnowledgeCards
from stores.ledger import Ledger
from stores.user_memory import UserMemories

RESPONDER = (
    "Who answers: `auto` (Ollama where it runs, else rules), `rules`, `ollama:<model>`, "
    "or any LangChain `<provider>:<model>`."
)


ALONE = "mneme:alone"
"""The permission of the one person on a server without keys, who may name any user."""


class MemoryContext(BaseModel):
    """Whose memory a run works on, and who decides what is remembered."""

    model_config = ConfigDict(extra="forbid")

    user: str = Field(
        "local", description="Whose memories. Ignored where the server authenticates: then the caller's."
    )
    memory_agent: str = Field("auto", description=f"The memory agent's model. {RESPONDER}")
    similar: int = Field(
        10, ge=1, le=100, description="How many similar memories the conflict router checks, each by itself."
    )
    min_similarity: float = Field(
        0.0, ge=-1, le=1, description="Cosine below which a memory does not count as similar."
    )
    window: int = Field(
        8192,
        ge=256,
        description="Tokens of the latest whole turns that the chatbot sees (§2.2); the longest message.",
    )


class ChatContext(MemoryContext):
    """What a conversation adds: the chatbot's model and what it is shown."""

    chatbot: str = Field("auto", description=f"The chatbot's model. {RESPONDER}")
    recall: int = Field(10, ge=0, le=100, description="How many memories the chatbot is shown.")
    search: Literal["dense", "hybrid"] = Field(
        "dense", description="Recall by cosine, as the paper does, or fused with BM25."
    )
    debounce: int = Field(2, ge=0, description="Seconds of silence before the server's memory agent starts.")


Context = TypeVar("Context", bound=MemoryContext)


def user_of(runtime: Runtime[Context]) -> str:
    """Return the authenticated user where there is one, else the context's; never a word of any text."""
    user = runtime.server_info.user if runtime.server_info else None
    if user is None or ALONE in user.permissions:
        return runtime.context.user
    return user.identity


def memories_of(runtime: Runtime[Context]) -> UserMemories:
    """Return the memories of this run's user, in the ledger behind the graph's store."""
    return UserMemories(ledger_of(runtime), user_of(runtime))


def inbox_of(runtime: Runtime[Context]) -> Inbox:
    """Return the messages that wait to be remembered."""
    return Inbox(ledger_of(runtime))


class OwnedByTeam(BaseModel):
    """Which team remembers what a run learns."""

    model_config = ConfigDict(extra="forbid")

    team: str = Field(
        "local", description="Whose memories. Where the server authenticates, a team of the caller's."
    )


class TeamContext(OwnedByTeam):
    """In which environment a team learns, and who challenges its solutions."""

    devils_advocate: str = Field("auto", description=f"The devil's advocate's model. {RESPONDER}")
    environment: Literal["", "sql_tuning"] = Field(
        "", description="Where solutions are run and measured; empty: nowhere, the leader judges."
    )
    schema_name: str = Field("events", description="sql_tuning: the schema of the database.")
    database_seed: int = Field(0, ge=0, description="sql_tuning: the seed of the database.")
    rows: int = Field(60_000, ge=100, le=2_000_000, description="sql_tuning: rows of the table of facts.")
    successes_to_verify: int = Field(
        2, ge=1, description="Successes before a card may be verified; the paper names 3 (§6) and 2 (§7)."
    )


class LearningContext(TeamContext):
    """The other agents of compound learning, and what they are shown."""

    researcher: str = Field("auto", description=f"The researcher's model. {RESPONDER}")
    leader: str = Field("auto", description=f"The leader's model. {RESPONDER}")
    monitor: str = Field("auto", description=f"The monitor's model. {RESPONDER}")
    recall: int = Field(5, ge=0, le=20, description="How many cards are retrieved; 0: none, no memory.")


Owned = TypeVar("Owned", bound=OwnedByTeam)
Team = TypeVar("Team", bound=TeamContext)


def team_of(runtime: Runtime[Owned]) -> str:
    """Return the run's team: within the authenticated user's own teams where there is a user."""
    user = runtime.server_info.user if runtime.server_info else None
    alone = user is None or ALONE in user.permissions
    return own_team(None if alone or user is None else user.identity, runtime.context.team)


def own_team(identity: str | None, team: str) -> str:
    """Return the name under which a team is kept; one user's teams cannot be another's."""
    if identity is None:
        return team
    if "/" in team:
        raise BadInput(f"A team's name holds no slash: {team}.", "Choose another name.")
    return f"{identity}/{team}"


def cards_of(runtime: Runtime[Team]) -> KnowledgeCards:
    """Return the knowledge cards of this run's team, in the ledger behind the graph's store."""
    settings = CardSettings(successes_to_verify=runtime.context.successes_to_verify)
    return KnowledgeCards(ledger_of(runtime), team_of(runtime), settings)


def ledger_of(runtime: Runtime[Any]) -> Ledger:
    """Return the ledger behind the graph's store. Raises BadInput where the graph has none."""
    if isinstance(runtime.store, LedgerStore):
        return runtime.store.ledger
    raise BadInput(
        "This graph runs without a ledger.",
        "Compile it with store=LedgerStore(ledger), or name the store in langgraph.json.",
    )
