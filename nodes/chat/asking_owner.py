"""Ask a memory's owner whether a team may know it, as a policy says, if somebody is there to answer.

The open questions are stored in the memories themselves: a run that nobody answers leaves nothing undone, and
a question that was decided elsewhere meanwhile is not asked.
"""

from typing import Any

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mneme.nodes import answers
from mneme.nodes.answers import PersonAnswer
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.context import authenticated
from mneme.stores.access import may
from mneme.stores.ledger.records import Change

ACTION = "share_memory"
CONSENTS = {"accept": True, "reject": False, "respond": False}
OWNER_CHANGE = Change(reason="its owner was asked", actor="user")


class Asking(TypedDict):
    """The version of a memory that a question is about, and the team that is to know it."""

    key: str
    version: int
    team: str


class Questions(TypedDict):
    """The questions of a run so far, the latest last."""

    asked_about: list[Asking]


class Answer(BaseModel):
    """Whether a team may know a memory."""

    share: bool | None = Field(None, description="Share it; no: it stays private; left open: ask later.")


async def next_question(asked: list[Asking], runtime: MemoryRuntime) -> Asking | None:
    """Return the oldest question that was not asked in this run."""
    waiting = (
        Asking(key=each.key, version=each.version, team=team)
        for each in await memories_of(runtime).all()
        for team in each.memory.asks
    )
    # A question names a version: if the memory has changed since, its owner is asked anew.
    return next((each for each in waiting if each not in asked), None)


async def ask_owner(state: Questions, runtime: MemoryRuntime) -> None:
    """Wait for the owner's answer about one memory, and carry it out; ignore it if the memory has changed."""
    memories, asking = memories_of(runtime), state["asked_about"][-1]
    key, team = asking["key"], asking["team"]
    found = await memories.find(key)  # read again, since a resumed node starts anew after any time
    if not (found and found.live and found.version == asking["version"] and team in found.memory.asks):
        return
    if not may(authenticated(runtime), team, "write"):  # the owner may have left the team
        return
    about = f"May {team} know this? {found.memory.attention}\n\n{found.memory.timed}"
    question = answers.action(ACTION, about, Answer(share=True), ("approve", "edit", "reject", "ignore"))
    said = answers.ask_person({**asking, **question}, Answer, _read)
    if said.share:
        await memories.share(
            key, team, OWNER_CHANGE.model_copy(update={"reason": f"shared by {memories.user}"})
        )
    elif said.share is not None:
        await memories.keep_private(key, team, OWNER_CHANGE)


def _read(said: Any) -> Answer:
    """Read an answer; to ignore the question leaves it open."""

    def fields_of(given: PersonAnswer) -> dict[str, Any]:
        return given.args if given.kind == "edit" else {"share": CONSENTS.get(given.kind)}

    return answers.read_answer(Answer, said, 'Say {"share": true} or {"share": false}.', fields_of)
