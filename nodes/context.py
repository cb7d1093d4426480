"""The owner of a run's memories, a user or a team, and the ledger that holds them.

Each workflow declares its own context in its room (`nodes/<workflow>/context.py`): plain strings and numbers
with descriptions, so that Studio and the API can edit them.
"""

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import BadInput
from mneme.stores.access import SOLE_PERSON, own_team, own_user
from mneme.stores.audit import StartedLedger
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL

if TYPE_CHECKING:  # slow to import
    from langgraph.runtime import Runtime

RESPONDER = (
    "Who answers: `auto` (Ollama where it runs, else rules), `rules`, `ollama:<model>`, "
    "or any LangChain `<provider>:<model>`."
)
RESPONDERS = ["auto", "rules", "ollama:llama3.1:8b", "openai:gpt-4o-mini"]


def responder(who: str) -> Any:
    """Return a context field that names the model of a role."""
    return Field("auto", description=f"{who} {RESPONDER}", examples=RESPONDERS)


def _with_examples(schema: dict[str, Any]) -> None:
    """Give each field without an example its default as the example, since Studio shows one."""
    for field in schema["properties"].values():
        field.setdefault("examples", [field["default"]])


class OwnedByUser(BaseModel):
    """The user whose memories a run works on."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_with_examples)

    user: str = Field(
        LOCAL,
        description="The user whose memories are used; on a server with keys, the key's user alone.",
        examples=["ann"],
    )


class OwnedByTeam(BaseModel):
    """The team that remembers what a run learns."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_with_examples)

    team: str = Field(
        LOCAL,
        description="The team whose data is used; on a server with keys, one of the key's user.",
        examples=["analysts"],
    )


UserOwned = TypeVar("UserOwned", bound=OwnedByUser)
TeamOwned = TypeVar("TeamOwned", bound=OwnedByTeam)


def user_of(runtime: "Runtime[UserOwned]") -> str:
    """Return the authenticated user if there is one, else the context's; never a name from a text.

    Raises Forbidden if the context names another user than the key's.
    """
    return own_user(authenticated(runtime), runtime.context.user)


def team_of(runtime: "Runtime[TeamOwned]") -> str:
    """Return the run's team; with an authenticated user, only a team that this user may use."""
    return own_team(authenticated(runtime), runtime.context.team)


def authenticated(runtime: "Runtime[Any]") -> str | None:
    """Return the caller that the server authenticated; None without a server, or without keys."""
    user = runtime.server_info.user if runtime.server_info else None
    # Without keys the server still names a user, whose permission says that the context may name any.
    return None if user is None or SOLE_PERSON in user.permissions else user.identity


def ledger_of(runtime: "Runtime[Any]") -> Ledger:
    """Return the ledger behind the graph's store; with keys, each version names the user who started the run.

    Raises BadInput if the graph has none.
    """
    from mneme.stores.ledger.base_store import LedgerStore  # noqa: PLC0415  (LangGraph is slow to import)

    if isinstance(runtime.store, LedgerStore):
        ledger, who = runtime.store.ledger, authenticated(runtime)
        return ledger if who is None else StartedLedger(ledger, who)  # a view: the same log and caches
    raise BadInput(
        "This graph runs without a ledger.",
        "Compile it with `async with mneme.open_store() as store`, or name the store in langgraph.json.",
    )
