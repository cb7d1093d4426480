"""Context of the chatbot and the memory agent: whose memories, which models, how much is recalled."""

from typing import Literal, TypeVar

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.nodes.chat.compared import compared
from mneme.nodes.context import OwnedByUser, authenticated, ledger_of, responder, user_of
from mneme.nodes.shared_memory import SharesMemory
from mneme.stores.ledger.query import Mode
from mneme.stores.ledger.records import LOCAL
from mneme.stores.users.promotion import OwnMemories


class MemoryContext(OwnedByUser):
    """The owner of the memories that the memory agent keeps, and the model that decides."""

    memory_agent: str = responder("The memory agent's model.")
    similar: int = Field(
        20,
        ge=1,
        le=100,
        description="How many similar memories a new fact is compared with at most.",
        examples=[20],
    )
    min_similarity: float = Field(
        0.0, ge=-1, le=1, description="Cosine below which a memory does not count as similar.", examples=[0.3]
    )
    retrieval: Literal["fixed", "agent"] = Field(
        "fixed",
        description="Version 1 is shown the most similar memories, or searches with a tool (§2.1).",
        examples=["agent"],
    )
    window: int = Field(
        8192,
        ge=256,
        description="Tokens of the latest whole turns that the chatbot sees (§2.2); the longest message.",
        examples=[8192],
    )
    reread: bool = Field(
        True,
        description="Once no message waits, a model reads again what rules have read.",
        examples=[True],
    )
    asks_owner: bool = Field(
        False,
        description="Interrupt at the end, for the owner's word on each memory that a policy asks about.",
        examples=[False],
    )


class ChatContext(MemoryContext, SharesMemory):
    """Context of a conversation: the chatbot's model and what it is shown."""

    chatbot: str = responder("The chatbot's model.")
    recall: int = Field(
        10, ge=0, le=100, description="How many memories the chatbot is shown.", examples=[10]
    )
    search: Mode = Field(
        "blend",
        description="Recall by cosine, as the paper does (dense), by words (bm25), by both ranks (hybrid), "
        "or by both scores, names, dates and what was told beside it (blend).",
        examples=["blend", "dense"],
    )
    team: str = Field(
        LOCAL, description="The team whose findings the chatbot is shown.", examples=["analysts"]
    )
    debounce: int = Field(
        2, ge=0, description="Seconds of silence before the server's memory agent starts.", examples=[2]
    )


MemoryRuntime = Runtime[MemoryContext]
ChatRuntime = Runtime[ChatContext]
UserMemory = TypeVar("UserMemory", bound=MemoryContext)


def memories_of(runtime: Runtime[UserMemory]) -> OwnMemories:
    """Return the memories of this run's user, in the ledger behind the graph's store."""
    return OwnMemories(ledger_of(runtime), user_of(runtime), authenticated(runtime), compared)
