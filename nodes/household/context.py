"""Context of a household: the models that play, and the parts of the architecture that are switched on."""

from typing import Literal

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.nodes.context import OwnedByTeam, responder
from mneme.nodes.shared_memory import SharesMemory
from mneme.stores.ledger.records import MAX_INT

Setting = Literal["symbolic", "visual"]


class HouseholdContext(OwnedByTeam, SharesMemory):
    """The models of members and manager, and the parts of the architecture that are switched on."""

    member: str = responder("The members' model.")
    manager: str = responder("The manager's model.")
    allocation: bool = Field(
        True, description="Whether the manager allocates; else each does as it proposed."
    )
    summary: bool = Field(True, description="Whether the manager keeps synopses of what happened.")
    window: int = Field(
        10,
        ge=1,
        description="Latest steps whose observations a member reports, and latest entries it is shown.",
    )
    remember: bool = Field(
        False, description="Start from what the team learned in this apartment, and keep what it learns."
    )
    member_lapses: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the members' decisions that are drawn at random (of MiTa's, CoELA's and "
        "ProAgent's).",
    )
    manager_lapses: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the manager's decisions that are drawn at random, and kept to until done.",
    )
    setting: Setting = Field(
        "symbolic",
        description="Whether agents are told what is in their room, or see what is before their eyes.",
    )
    perception: str = Field(
        "segments",
        description="Perception in the visual setting: `segments` (and depth, no model), or a "
        "model with vision, `ollama:<model>` or any LangChain `<provider>:<model>`.",
    )
    simulator: str = Field(
        "",
        description="Who plays the world instead of Mneme's own rules: the real VirtualHome, by its "
        "simulator's address (not on a server).",
        examples=["", "http://127.0.0.1:8080"],
    )
    seed: int = Field(0, ge=0, le=MAX_INT, description="Decides conflicts in the world, and lapses.")


HouseholdRuntime = Runtime[HouseholdContext]
