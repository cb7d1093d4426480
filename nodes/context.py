"""What a run's context decides: whose memory it is, who answers, how much is recalled.

Plain strings and numbers with descriptions, so that Studio and the API can edit them.
"""

from typing import Literal, TypeVar

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from mneme.errors import BadInput
from stores.base_store import LedgerStore
from stores.inbox import Inbox
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
    return UserMemories(_ledger_of(runtime), user_of(runtime))


def inbox_of(runtime: Runtime[Context]) -> Inbox:
    """Return the messages that wait to be remembered."""
    return Inbox(_ledger_of(runtime))


def _ledger_of(runtime: Runtime[Context]) -> Ledger:
    if isinstance(runtime.store, LedgerStore):
        return runtime.store.ledger
    raise BadInput(
        "This graph runs without a ledger.",
        "Compile it with store=LedgerStore(ledger), or name the store in langgraph.json.",
    )
