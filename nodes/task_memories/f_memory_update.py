"""f_memory_update (§3, equation 3, figure 2) of all graphs; ROLE is the whole specification R_n.

Deviation: a reply that stays unusable is merged slot by slot: usable slots are taken, the others stay as they
were, and a complaint names them. In the paper the reply becomes the memory, whatever it contains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mneme.core.errors import BadAnswer
from mneme.library.teams.team import CHARACTERS_PER_TOKEN
from mneme.models.asking.asking import ask, resolve
from mneme.nodes.task_memories.salvage import usable_memory
from mneme.prompts.discussion.memory_template import Slots
from mneme.prompts.discussion.memory_update import Remembering, update_memory_by


@dataclass(frozen=True)
class Agent:
    """The owner of a memory: R_n, MT_n, the memory's bound in tokens, who answers, and the task."""

    specification: str
    template: dict[str, Any]
    memory_tokens: int
    who: str
    lane: Literal["user", "background"]
    task: str


@dataclass(frozen=True)
class MemoryUpdate:
    """M_{n,m}, the reason, and who answered; `complaint` says what was not taken of an unusable reply."""

    memory: dict[str, Any]
    reason: str
    responder: str
    complaint: str = ""


async def f_memory_update(
    agent: Agent,
    memory: dict[str, Any],
    output: str,
    accepted: Sequence[str] = (),
) -> MemoryUpdate:
    """Return M_{n,m} of an agent's old memory M_{n,m-1} and its output O_{n,m}.

    `accepted` has the turns of others that accepted the solution since the agent's last turn.
    """
    question = update_memory_by(agent.template)
    given = Remembering(
        role=agent.specification,
        task=agent.task,
        template=Slots(agent.template),
        memory=Slots(memory),
        output=output,
        accepted=list(accepted),
        limit=CHARACTERS_PER_TOKEN * agent.memory_tokens,
    )
    try:
        answered = await ask(question, given, agent.who, lane=agent.lane)
    except BadAnswer as bad:
        merged, taken, kept = usable_memory(given, bad.raw)
        before = f"as before: {', '.join(kept) or 'nothing'}."
        complaint = f"{str(bad).rstrip('.')}. Of the update of {given.role.partition(':')[0]}'s memory "
        complaint += f"{', '.join(taken) or 'nothing'} was taken; {before}"
        reason = f"Merged from an unusable reply; {before}"
        # The error has no responder, so it is resolved anew.
        return MemoryUpdate(merged, reason, await resolve(agent.who), complaint)
    return MemoryUpdate(answered.value.slots, answered.value.reason, answered.responder)
