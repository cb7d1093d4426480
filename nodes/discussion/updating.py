"""The step of a discussion after each turn: f_memory_update (§3, equation 3) for whoever has spoken."""

from mneme.library.teams.team import CHARACTERS_PER_TOKEN
from mneme.nodes.costs import counted
from mneme.nodes.discussion.context import DiscussionRuntime, Table, as_output, who_answers
from mneme.nodes.discussion.state import State, Update
from mneme.nodes.task_memories.f_memory_update import Agent, f_memory_update
from mneme.stores.discussions.discussions import Turn
from mneme.stores.ledger.records import Change


@counted
async def update(state: State, runtime: DiscussionRuntime) -> Update:
    """Update the speaker's memory with its own output: the memory update function (equation 3)."""
    table = await Table.of(state["discussion_id"], runtime)
    turn = await table.conversation.get(state["turn"])
    if turn is None or turn.passed or table.about.memory == "none":
        return {}
    if table.is_intrinsic:
        return await _updated(turn, table)
    turns = [as_output(turn) for turn in await table.conversation.all(state["turn"])]
    memory = table.baseline()
    return {"held": await memory.observe(table.task, state["held"], turns)}


async def _updated(turn: Turn, table: Table) -> Update:
    memory = table.discussions.memory(table.about.id, turn.speaker)
    known = await memory.now()
    if known.turn >= turn.number:  # kept already where this step was killed after it
        return {}
    role = table.team.role(turn.speaker)
    who = who_answers(role, table.context)
    agent = Agent(role.specification, role.memory, table.memory_tokens, who, "user", table.about.task)
    # What others said as they accepted, newest where not all have room beside the memory.
    said = await table.conversation.between(known.turn + 1, turn.number - 1)
    room, shown = CHARACTERS_PER_TOKEN * table.memory_tokens, list[str]()
    for other in reversed([each for each in said if each.accept and each.speaker != turn.speaker]):
        room -= len(str(other))
        if room < 0:
            break
        shown.insert(0, str(other))
    raised = [f"Issue raised: {each.about}" for each in turn.raises if each.about not in turn.message]
    is_silent = turn.accept and "accept" not in turn.message.lower()
    done = await f_memory_update(
        agent,
        known.memory,
        "\n".join([turn.message, *raised, *["I accept the solution as it stands."] * is_silent]),
        shown,
    )
    change = Change(reason=done.reason, actor=turn.speaker, model=done.responder)
    await memory.update(done.memory, turn=turn.number, change=change, expected_version=known.version)
    if not done.complaint:
        return {}
    told = f"Turn {turn.number}: {done.complaint}"
    table.runtime.stream_writer({"step": "complaint", "turn": turn.number, "complaint": told})
    return {"complaints": [told]}
