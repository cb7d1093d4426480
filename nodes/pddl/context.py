"""Which models play in a PDDL world, with which memory, and how much an agent is shown."""

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.nodes.context import RESPONDER, OwnedByTeam
from mneme.nodes.task_memories.kinds import MemoryName


class PddlContext(OwnedByTeam):
    """Who plays, with which memory, and how much an agent is shown."""

    memory: MemoryName = Field("intrinsic", description="The team's memory.")
    solver: str = Field("auto", description=f"The solver's model. {RESPONDER}")
    second_agent: str = Field("auto", description=f"The second agent's model. {RESPONDER}")
    memory_model: str = Field("auto", description=f"Who answers the memory's own questions. {RESPONDER}")
    window: int = Field(
        4096, ge=512, description="Tokens of a context: task, memory and the turns that fit (algorithm 1)."
    )
    memory_tokens: int = Field(
        700, ge=100, description="The most tokens of one agent's structured memory (intrinsic)."
    )


PddlRuntime = Runtime[PddlContext]
