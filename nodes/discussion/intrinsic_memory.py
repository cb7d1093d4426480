"""A discussion with intrinsic memory (§3, §5): open, select, speak or hear, update; again and again.

What the paper leaves open, and deviations:

- The delegate's FINALIZE and a worker's ACCEPT are fields. An acceptance holds until its worker speaks again,
  or somebody raises an issue that concerns it, or changes the solution without naming an issue. A worker may
  accept in the turn in which it proposes something, not in one in which it raises an issue. There is no
  consensus while an issue is unanswered.
- The writer of the document has not spoken (§5, DJE): it reads what all agents remember (`experts.py`).
- If a reply stays unusable, its message is kept if possible, and none of its decisions; else its speaker
  passes. A third pass in a row stops the discussion.
- A person's turn updates the memory of the role that the person speaks for, like any output of that role.
- Turns and memories are in the ledger; the state holds only names and numbers, so that checkpoints grow
  linearly with the turns. A thread that is forked from an old checkpoint therefore replays the stored turns;
  for another course, begin another discussion.
"""

import asyncio
from typing import Any, Literal
from uuid import uuid4

from langgraph.types import Overwrite

from mneme.core.errors import BadAnswer, BadInput
from mneme.library.teams.selection import Floor, part_of, sigma, speakers_of
from mneme.library.teams.team import CHARACTERS_PER_TOKEN, Delegated, Role, Team
from mneme.models.asking.asking import ask, resolve
from mneme.models.asking.counting import NOTHING, counting, tokens_in
from mneme.models.ollama.tokenizers import counter_of
from mneme.nodes.answers import action
from mneme.nodes.context import ledger_of
from mneme.nodes.discussion.carrying import begun_with
from mneme.nodes.discussion.context import (
    DiscussionRuntime,
    Table,
    discussions_of,
    team_given,
    who_answers,
)
from mneme.nodes.discussion.person import PersonTurn, ask_person
from mneme.nodes.discussion.state import State, heard
from mneme.nodes.messages import said_in
from mneme.nodes.shared_memory import look_up
from mneme.nodes.task_memories.f_context import Window
from mneme.nodes.task_memories.f_memory_update import Agent, f_memory_update
from mneme.nodes.task_memories.salvage import usable_message
from mneme.nodes.workflow import Update, counted
from mneme.prompts.discussion.intrinsic_memory import (
    QUESTIONS,
    Contribution,
    Delegating,
    Delegation,
    Raising,
    Speaking,
    delegate,
)
from mneme.prompts.prompt import Prompt
from mneme.stores.discussions.agent_memory import CarriedMemories
from mneme.stores.discussions.discussions import Discussion, Ending, Raised, Turn, check_id
from mneme.stores.ledger.records import Change

PASSED_TURN = "(no usable reply)"
MAX_PASSES = 2
"""Maximum consecutive passed turns; after more the discussion stops, since its model is too weak."""
NOBODY_NOTE = "nobody need speak: all have accepted, and no issue is open"


async def open(state: State, runtime: DiscussionRuntime) -> Update:
    """Check task, team and bounds before any model is asked; store them, and begin every agent's memory."""
    team = await asyncio.to_thread(team_given, state.get("team") or "data_pipeline")  # it reads a file
    task = said_in(state["messages"]).text if state.get("messages") else str(state.get("task") or "").strip()
    discussion_id = check_id(state.get("discussion_id") or uuid4().hex)  # names a folder, too
    await _check(task, team, runtime)
    context, talks = runtime.context, discussions_of(runtime)
    carried = CarriedMemories(ledger_of(runtime), talks.owner, team.name)
    brought = await carried.holding() if context.carry else {}
    begun = Discussion(  # fixed until its end, however often it is resumed
        id=discussion_id,
        task=task,
        team=team.model_dump(mode="json"),
        memory=context.memory,
        context_tokens=context.context_tokens or team.context_tokens,
        max_turns=context.max_turns or team.max_turns,
        person=context.person,
        approve=context.approve,
        carry=context.carry,
        shared=await look_up(runtime, task, "expert", but=["agreement"]),
        carried=list(dict.fromkeys(name for each in brought.values() for name in each.made_from)),
    )
    about = await talks.open(begun)  # a known id: as it was begun, whatever the context says
    table = await Table.of(about.id, runtime)
    for role in table.team.roles if table.is_intrinsic else ():
        filled, reason = begun_with(table, role, brought.get(role.name) if about.carry else None)
        memory = table.discussions.memory(about.id, role.name)
        await memory.begin(filled, change=Change(reason=reason, actor="intrinsic_memory"))
    runtime.stream_writer({"step": "open", "discussion": about.id, "team": team.name})
    return {
        "discussion_id": about.id,
        "ended": "",
        "turn": 0,
        "document": {},
        "report": {},
        "tokens": 0,
        "answered_by": {},
        "asked": Overwrite(NOTHING),
        "speaker": "",
        "worker_counter": 0,
        "accepted": {},
        "finalize": False,
        "approved": False,
        "lacks": "",
        "complaints": Overwrite([]),
        "bound": about.max_turns,
        "person": about.person,
        "approve": about.approve,
    }


async def _check(task: str, team: Team, runtime: DiscussionRuntime) -> None:
    """Raise BadInput, naming the field, for faults that would fail in the middle of a discussion."""
    context = runtime.context
    if not task:
        raise BadInput("task: it is empty.", "Say what the team is to discuss.")
    if context.carry and context.memory != "intrinsic":
        raise BadInput(f"carry: the memory {context.memory} has none of single agents.", "Take intrinsic.")
    if (name := context.person) and name not in (spoken := speakers_of(team)):
        raise BadInput(
            f"person: the {team.role(name).title} never has the floor: {name} only writes the document.",
            f"Speak as one of {', '.join(spoken)}.",
        )
    budget = context.context_tokens or team.context_tokens
    memory = team.memory_within(budget) if context.memory == "intrinsic" else 0
    if context.memory == "intrinsic" and (cramped := team.cramped(budget)):
        raise BadInput(
            f"context_tokens: {budget} leave {memory} to a memory, too few for the slots of {cramped}.",
            "Raise context_tokens, or the team's memory_tokens.",
        )
    for role in team.roles:
        who = await resolve(who_answers(role, context))
        if team.needs_model and who == "rules" and role.name != context.person:
            raise BadInput(
                f"team: {team.name} needs a model for the {role.title}: rules cannot judge.",
                "Give one, such as agents ollama:llama3.1:8b, or choose another team.",
            )
        count = await counter_of(who)
        if (needed := count(task) + memory) >= budget:
            raise BadInput(
                f"task: with the memory it needs {needed} tokens; context_tokens is {budget}.",
                "Shorten the task, raise context_tokens, or lower the team's memory_tokens.",
            )


@counted
async def select(state: State, runtime: DiscussionRuntime) -> Update:
    """Choose the next speaker (σ), or end the discussion, by consensus or by its turn limit."""
    table = await Table.of(state["discussion_id"], runtime)
    unanswered = [str(each) for each in await table.unsettled(state["turn"]) if each.status == "open"]
    goes_round = not isinstance(table.team.speakers, Delegated)
    # With a delegate only its FINALIZE ends the discussion (algorithm 2).
    settled = goes_round and not (_outstanding(state, table) or unanswered)
    ended: Ending = "turn limit" if state["turn"] >= state["bound"] else ""
    if ended := "consensus" if state["finalize"] or settled else ended:
        return {"ended": ended, "speaker": table.team.document.by}
    following = sigma(table.team, Floor(state["speaker"], state["worker_counter"]))  # algorithm 2
    return {"speaker": following.speaker, "worker_counter": following.worker_counter}


def _outstanding(state: State, table: Table) -> list[str]:
    return [name for name in table.team.deciders if not state["accepted"].get(name)]


def floor(state: State) -> Literal["speak", "hear", "document"]:
    """Return the next node: the agent speaks, the person is heard, or the document is written."""
    if state["ended"]:
        return "document"
    return "hear" if state["speaker"] == state["person"] else "speak"


@counted
async def speak(state: State, runtime: DiscussionRuntime) -> Update:
    """Let the selected agent speak from its own context (equations 1 and 2), and store the turn."""
    table = await Table.of(state["discussion_id"], runtime)
    number = state["turn"] + 1
    turn = await table.conversation.get(number)  # stored already if this step was killed
    if turn is None:
        with counting() as asked:
            said = await _spoken(number, state, table)
        turn = await table.conversation.add(said.model_copy(update={"tokens": tokens_in(asked)}))
    return heard(turn, state, runtime) | {"complaints": [turn.complaint] if turn.complaint else []}


async def _spoken(number: int, state: State, table: Table) -> Turn:
    role = table.team.role(state["speaker"])
    window = await table.shown_to(role, state["turn"])
    who = await resolve(who_answers(role, table.context))
    issues = await table.unsettled(state["turn"])
    given = Speaking(
        **table.shown_as(role, window, issues),
        purposes=[f"{name}: {purpose}" for name, purpose in table.team.document.item_fields.items()],
        room=table.room(role, await counter_of(who)),
        experts=table.titles(table.team.deciders),
    )
    unanswered = [str(each) for each in issues if each.status == "open"]
    question, asked = await _asked(given, state, table, unanswered)
    turn = Turn(
        number=number,
        speaker=role.name,
        title=role.title,
        message="",
        context_tokens=window.tokens,
        turns_shown=len(window.turns),
        answered_by=who,
    )
    try:
        answered = await ask(question, asked, who, lane="user")
    except BadAnswer as bad:
        return turn.model_copy(update=await _words_alone(turn, usable_message(asked, bad.raw), bad, table))
    value = answered.value
    said = {
        "message": value.message,
        "reasoning": value.reasoning,
        "changes": isinstance(value, Contribution) and value.changes,
        "accept": isinstance(value, Contribution) and value.accept and not value.raises,
        "finalize": isinstance(value, Delegation) and value.finalize,
        "raises": _raised(value, table) if isinstance(value, Raising) else [],
        "answers": [issues[at].number for at in value.answers] if isinstance(value, Raising) else [],
        "answered_by": answered.responder,
    }
    return turn.model_copy(update=said)


async def _words_alone(turn: Turn, message: str, bad: BadAnswer, table: Table) -> Update:
    """Return the turn of an unusable reply: its message alone, or a passed turn.

    Raises the error if the last MAX_PASSES turns were passed, too.
    """
    before = await table.conversation.between(max(turn.number - MAX_PASSES, 1), turn.number - 1)
    if not message and len(before) == MAX_PASSES and all(each.passed for each in before):
        raise bad
    kept = "only its words were taken" if message else f"the {turn.title} passes"
    return {
        "message": message or PASSED_TURN,
        "passed": not message,
        # What it decided is unknown, so it counts as a change: the others are asked again.
        "changes": bool(message) and part_of(table.team, turn.speaker) == "contribute",
        "complaint": f"Turn {turn.number}: {bad} Of this turn {kept}.",
    }


def _raised(value: Raising, table: Table) -> list[Raised]:
    """Return the issues of an answer, each once, with the names of the roles that each concerns."""
    names = {role.title: role.name for role in table.team.roles}
    said = {each.about: dict.fromkeys(each.concerns) for each in value.raises}  # each once, in order
    concerned = {
        about: [names[title] for title in titles if title in names] for about, titles in said.items()
    }
    return [Raised(about=about, concerns=concerns) for about, concerns in concerned.items()]


async def _asked(
    given: Speaking, state: State, table: Table, unanswered: list[str]
) -> tuple[Prompt[Any, Any], Speaking]:
    """Return the prompt and its input for the speaker's part in the discussion."""
    part = part_of(table.team, state["speaker"])
    if part != "delegate":
        return QUESTIONS[part], given
    following = sigma(table.team, Floor(state["speaker"], state["worker_counter"])).speaker
    outstanding = await table.outstanding(_outstanding(state, table), state["turn"])
    is_settled = not outstanding and not unanswered
    asked = Delegating(
        **dict(given),
        outstanding=outstanding,
        unanswered=unanswered,
        following=NOBODY_NOTE if is_settled else table.team.role(following).title,
    )
    return delegate, asked


async def hear(state: State, runtime: DiscussionRuntime) -> Update:
    """Wait for the person who speaks for this role, and store the turn."""
    table = await Table.of(state["discussion_id"], runtime)
    role = table.team.role(state["speaker"])
    said = await table.conversation.get(state["turn"] + 1)
    if said is None:
        window = await table.shown_to(role, state["turn"])
        issues = await table.unsettled(state["turn"])
        is_agreed = not _outstanding(state, table) and all(issue.status != "open" for issue in issues)
        may_finalize = is_agreed and part_of(table.team, role.name) == "delegate"
        question = {
            "role": role.title,
            "task": window.task,
            "shared": list(table.shared),
            "memory": window.memory,
            "turns": window.turns,
            "outstanding": await table.outstanding(_outstanding(state, table), state["turn"]),
            "issues": {str(issue.number): str(issue) for issue in issues},
            "may_finalize": may_finalize,
            **action("speak", f"Speak as the {role.title}.", PersonTurn(), ("edit",)),
        }
        spoken = ask_person(question, PersonTurn)
        # A client may send what the question does not allow; a person is not asked again for that.
        spoken.finalize = spoken.finalize and may_finalize
        spoken.answers = [each.number for each in issues if each.number in (spoken.answers or [])]
        said = await table.conversation.add(_by_person(spoken, role, window, state["turn"] + 1, table))
    return heard(said, state, runtime)


def _by_person(spoken: PersonTurn, role: Role, window: Window, number: int, table: Table) -> Turn:
    """Return a person's turn; if `changes` is not given, it follows from the part and the acceptance."""
    changes = spoken.changes
    if changes is None:
        changes = part_of(table.team, role.name) in {"contribute", "evaluate"} and not spoken.accept
    return Turn(
        number=number,
        speaker=role.name,
        title=role.title,
        message=spoken.message,
        changes=changes,
        accept=spoken.accept and not spoken.raises,
        finalize=spoken.finalize,
        raises=[Raised(about=each) for each in spoken.raises or []],
        answers=spoken.answers or [],
        person=True,
        context_tokens=window.tokens,
        turns_shown=len(window.turns),
        answered_by="a person",
    )


@counted
async def update(state: State, runtime: DiscussionRuntime) -> Update:
    """Update the speaker's memory with its own output: the memory update function (equation 3)."""
    table = await Table.of(state["discussion_id"], runtime)
    turn = await table.conversation.get(state["turn"])
    if turn is None or turn.passed or not table.is_intrinsic:
        return {}
    memory = table.discussions.memory(table.about.id, turn.speaker)
    known = await memory.now()
    if known.turn >= turn.number:  # stored already if this step was killed
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
    # The memory is updated from one text, so it also says what the turn's fields say and its words do not.
    raised = [f"Issue raised: {each.about}" for each in turn.raises if each.about not in turn.message]
    is_silent = turn.accept and "accept" not in turn.message.lower()
    output = "\n".join([turn.message, *raised, *["I accept the solution as it stands."] * is_silent])
    done = await f_memory_update(agent, known.memory, output, shown)
    change = Change(reason=done.reason, actor=turn.speaker, model=done.responder)
    await memory.update(done.memory, turn=turn.number, change=change, expected_version=known.version)
    if not done.complaint:
        return {}
    told = f"Turn {turn.number}: {done.complaint}"
    table.runtime.stream_writer({"step": "complaint", "turn": turn.number, "complaint": told})
    return {"complaints": [told]}
