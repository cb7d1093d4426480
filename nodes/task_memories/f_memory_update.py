"""f_memory_update (§3, equation 3, figure 2), as every graph asks it; ROLE is the whole specification R_n."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mneme.library.teams.team import CHARACTERS_PER_TOKEN
from mneme.models.asking.asking import Answered, ask
from mneme.prompts.discussion.intrinsic_memory import Remembering, Updated, update_memory_by
from mneme.prompts.discussion.memory_template import Slots
from mneme.prompts.prompt import Prompt


@dataclass(frozen=True)
class Agent:
    """Whose memory it is: R_n, MT_n, the bound of the memory, and who answers."""

    specification: str
    template: Mapping[str, Any]
    memory_tokens: int
    who: str
    lane: Literal["user", "background"]


@dataclass(frozen=True)
class MemoryUpdate:
    """What came of an update, with what was asked for it."""

    question: Prompt[Remembering, Updated]
    given: Remembering
    answered: Answered[Updated]


async def f_memory_update(agent: Agent, memory: Mapping[str, Any], output: str) -> MemoryUpdate:
    """Return M_{n,m} of an agent's old memory M_{n,m-1} and its output O_{n,m}."""
    question = update_memory_by(agent.template)
    given = Remembering(
        role=agent.specification,
        template=Slots(dict(agent.template)),
        memory=Slots(dict(memory)),
        output=output,
        limit=CHARACTERS_PER_TOKEN * agent.memory_tokens,
    )
    return MemoryUpdate(question, given, await ask(question, given, agent.who, lane=agent.lane))
