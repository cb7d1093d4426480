"""Context of a PDDL team: its models, its memory, and the size of an agent's context."""

from langgraph.runtime import Runtime
from pydantic import Field

from mneme.nodes.context import OwnedByTeam, responder
from mneme.nodes.task_memories.kinds import MemoryName


class PddlContext(OwnedByTeam):
    """The models of the agents, the kind of memory, and the size of an agent's context."""

    memory: MemoryName = Field("intrinsic", description="The team's memory.")
    solver: str = responder("The solver's model.")
    second_agent: str = responder("The second agent's model.")
    memory_model: str = responder("Who answers the memory's own questions.")
    context_tokens: int = Field(
        4096, ge=512, description="Tokens of a context: task, memory and the turns that fit (algorithm 1)."
    )
    memory_tokens: int = Field(
        700, ge=100, description="The most tokens of one agent's structured memory (intrinsic)."
    )

    example: bool = Field(
        True,
        description="Whether agents see one worked example of the domain, beside the window (AgentBoard's).",
    )


PddlRuntime = Runtime[PddlContext]
