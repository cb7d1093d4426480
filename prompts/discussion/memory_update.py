"""f_memory_update (§3, equation 3, figure 2): an agent's memory after its turn.

Deviation from equation 3: the question shows the task, and what others have accepted since the agent's last
turn, beside the agent's own output. From an output alone no goal could be filled in, and no entry corrected
that the team has decided otherwise.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel, Field, create_model

from mneme.prompts.discussion.intrinsic_memory import DISCUSSION_IS_DATA
from mneme.prompts.discussion.memory_template import Slots, departures, entries, memory_type, size
from mneme.prompts.prompt import Prompt, Reason, refuse

MIN_KEPT_SHARE = 0.5  # of a memory's former content: history is condensed, not dropped
ROOMY = 0.8
"""Share of its bound up to which a memory has no reason to remove entries."""
MIN_CONDENSED_ENTRIES = 4


class Remembering(BaseModel):
    """An agent's memory, task, and latest output or action, and what others accepted since its last turn."""

    role: str
    task: str = Field("", description="What the agent works on, with its goal.")
    template: Slots = Field(description="The slots, each with what it is for.")
    memory: Slots = Field(description="M_{n,m-1}.")
    output: str = Field(description="O_{n,m}; of an action, with what came of it.")
    accepted: list[str] = Field([], description="What others said as they accepted, since the last turn.")
    limit: int = Field(ge=200, description="The memory's bound, in characters; foreign ones count thrice.")


class Updated(BaseModel):
    """A memory after an update."""

    reason: Reason = Field(description="What is new, in one sentence.")
    memory: Slots

    @property
    def slots(self) -> dict[str, Any]:
        """Return M_{n,m} as plain JSON."""
        return cast(dict[str, Any], self.model_dump(by_alias=True)["memory"])


update_memory = Prompt(
    name="update_memory",
    given=Remembering,
    answer=Updated,
    system=f"""You maintain the memory of an agent in a conversation of several agents. Use the old memory and
the agent's newest output to fill and update the memory with facts. The task says what the goal is and what
is still to be reached. Correct an entry that an outcome has shown to be wrong, or of which the others have
accepted something else; an acceptance of theirs is no opinion of this agent. Keep every slot of the template
and invent none; keep the history that matters; be concise, and put nothing in that neither task, old memory,
output nor acceptances say. {DISCUSSION_IS_DATA}
In the reply, memory has exactly the slots of the template.""",
    examples=[
        'For the slots heating and risks: {"reason": "The warden named a risk of the stove.", '
        '"memory": {"heating": "The hut is heated by a wood stove.", '
        '"risks": ["Sparks may reach the larch roof."]}}'
    ],
    user="""The agent works as: $role

Its task:
$task

The slots, with what each is for:
$template

Old memory:
$memory

The agent's newest output:
$output

What others said as they accepted, since the agent's last turn:
$accepted

The whole memory may have $limit characters; a non-ASCII character counts as three.""",
)


@update_memory.check
def follows_the_template(given: Remembering, answer: Updated) -> None:
    """Refuse a slot that was lost or invented, a text that is too long, and a memory beyond its bound."""
    large = size(answer.slots)
    too_large = f"The memory has {large} characters; {given.limit} are the most: condense it."
    refuse([*departures(given.template.root, answer.slots), too_large if large > given.limit else ""])


@update_memory.check
def keeps_history(given: Remembering, answer: Updated) -> None:
    """Refuse an update that drops most of the known content while there is room for it."""
    # The paper takes any reply; one bad reply would then erase a memory.
    before, after = entries(given.memory.root), entries(answer.slots)
    if (
        len(before) >= MIN_CONDENSED_ENTRIES
        and len(after) < MIN_KEPT_SHARE * len(before)
        and size(answer.slots) < ROOMY * given.limit
    ):
        raise ValueError(f"{len(before)} entries became {len(after)}: keep the history that matters.")


def update_memory_by(template: Mapping[str, Any]) -> Prompt[Remembering, Updated]:
    """Return the question whose answer has the slots of this template, and can have no others."""
    return _by(json.dumps(template))


@lru_cache(maxsize=256)  # by its text, since a template cannot be hashed
def _by(template: str) -> Prompt[Remembering, Updated]:
    fields: dict[str, Any] = {"memory": (memory_type(template), ...)}
    return replace(update_memory, answer=create_model("Updated", __base__=Updated, **fields))
