"""MiTa: perceive, summarise where progress changed, negotiate, allocate, execute (§3, algorithm 1).

Negotiation and allocation cost no step of the world, as in the paper: what is said there is not
`send_message`. Where the paper leaves open what is meant:

- Progress `p` is evaluated from the joint belief (algorithm 1, line 9): how many things of each predicate are
  placed, held and found ("found and put", figure 2). Finding one is therefore a change of progress too.
- `H_i` and what a member reports of its belief are a truncated window: what it saw in its latest `window`
  steps, and its latest `window` actions. What fell out of it the manager knows only from a synopsis.
- An allocation tells the member where its target is, so that it can carry it out; nothing else of the
  manager's knowledge reaches a member.
- Members hear what each of them is doing (the dialogue of `H_i`), also where nobody allocates.
"""

from collections import Counter
from collections.abc import Sequence
from operator import add
from typing import Annotated, Any, Literal
from uuid import uuid4

from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from environments.household.beliefs import Beliefs, Known
from environments.household.episode import Episode
from environments.household.macro import Plan
from mneme.errors import BadAnswer
from models.asking import ask
from nodes import household
from nodes.context import ledger_of, team_of
from nodes.household import (
    Context,
    Counters,
    HouseholdState,
    Update,
    answered,
    beliefs_of,
    episode_of,
    lapse,
    unusable,
)
from nodes.household_views import NAMES, knowledge_of, macro_of, options_of, worker_of
from prompts.household import Knowledge, Option, Worker
from prompts.mita import (
    CrossContext,
    Passage,
    Report,
    Situation,
    Synopsis,
    allocate_actions,
    propose_action,
    summarise_passage,
)
from stores.episodic_memory import EpisodicMemory, Remembered, finds_of, furniture_of
from stores.records import Change, Source


class Progress(TypedDict):
    """How far the team is by its joint belief: placed by predicate, held and found by class."""

    placed: dict[str, int]
    held: dict[str, int]
    found: dict[str, int]


class Told(TypedDict):
    """A synopsis, when it was made, why, and the things and places that it names, as they then were."""

    step: int
    change: str
    synopsis: dict[str, Any]
    named: list[dict[str, Any]]


class Proposed(TypedDict):
    """What one member proposed."""

    member: int
    reason: str
    option: dict[str, Any]


class Asked(TypedDict):
    """What one member is given to propose from."""

    round: int
    situation: dict[str, Any]


class State(HouseholdState, total=False):
    """What MiTa adds: progress as it was, synopses, the joint actions since, and this round's proposals."""

    assessed: Progress
    last: Progress
    run: str
    last_step: int
    actions: list[str]
    synopses: list[Told]
    proposals: Annotated[list[Proposed], add]
    reason: str


class Result(TypedDict, total=False):
    """How the episode ended, and what was remembered of it."""

    success: bool
    steps: int
    progress: dict[str, int]
    counters: Counters
    synopses: list[Told]
    answered_by: list[str]


async def begin(state: State, runtime: Context) -> Update:
    """Set the episode up; the collaborative summary is empty (algorithm 1, line 3)."""
    update = await household.begin(state, runtime)
    nothing = Progress(placed=update["progress"], held={}, found={})
    started = update | {"assessed": nothing, "last": nothing, "last_step": -1, "actions": [], "synopses": []}
    if runtime.context.remember:
        started |= await _remembered(update, runtime)
    return started | {"run": uuid4().hex}


async def _remembered(update: Update, runtime: Context) -> Update:
    """Start from what the team learned in this apartment: where furniture stands, where things turned up."""
    episodes = await _memory(update["episode"], runtime).recall()
    furniture = {piece["id"]: Known.model_validate(piece) for piece in furniture_of(episodes)}
    told = Beliefs(agent=-1, things=furniture)
    members = []
    for member in update["members"]:
        known = Beliefs.model_validate(member["beliefs"])
        known.merge(told)
        members.append({**member, "beliefs": known.model_dump(mode="json")})
    runtime.stream_writer({"step": "remember", "episodes": [each.text for each in episodes]})
    return {"members": members, "found_before": finds_of(episodes)}


def _memory(episode: dict[str, Any], runtime: Context) -> EpisodicMemory:
    return EpisodicMemory(ledger_of(runtime), team_of(runtime), episode["apartment"])


async def perceive(state: State, runtime: Context) -> Update:
    """Let each member perceive, and evaluate the progress from what they believe together."""
    update = await household.perceive(state, runtime)
    beliefs = [Beliefs.model_validate(member["beliefs"]) for member in update["members"]]
    return update | {"assessed": assess(episode_of(state), beliefs), "proposals": Overwrite([])}


def assess(episode: Episode, beliefs: Sequence[Beliefs]) -> Progress:
    """Evaluate progress from the joint belief (algorithm 1, line 9)."""
    team = together(beliefs)
    names = episode.goal_names()
    held = [
        known.name for known in team.things.values() if known.relation == "held by" and known.name in names
    ]
    known = Counter(each.name for each in team.objects())
    wanted: Counter[str] = Counter()
    for goal in episode.goals:
        wanted[goal.name] += goal.count
    return Progress(
        placed=team.placed(episode.goals),
        held=dict(Counter(held)),
        found={name: min(known[name], count) for name, count in wanted.items() if known[name]},
    )


def together(beliefs: Sequence[Beliefs]) -> Beliefs:
    """Merge what several members believe, the latest sight of each thing counting."""
    team = Beliefs(agent=-1, step=max(each.step for each in beliefs), rooms=beliefs[0].rooms)
    for each in beliefs:
        team.merge(each)
    return team


def after_perceiving(state: State, runtime: Context) -> Literal["summarise", "finish"] | list[Send]:
    """Summarise where progress changed (algorithm 1, line 10); else negotiate, or end."""
    if runtime.context.summary and state["assessed"] != state["last"]:
        return "summarise"
    return negotiations(state, runtime)


def negotiations(state: State, runtime: Context) -> Literal["finish"] | list[Send]:
    """Ask every member for its proposal, all at once; nobody, where the episode is over."""
    if state["over"]:
        return "finish"
    beliefs = beliefs_of(state)
    return [
        Send("negotiate", Asked(round=state["round"], situation=_situation(state, runtime, beliefs, number)))
        for number in range(len(beliefs))
    ]


def _situation(state: State, runtime: Context, beliefs: Sequence[Beliefs], number: int) -> dict[str, Any]:
    """Show a member what it sees, believes, did, heard; its options by its own belief."""
    episode, window = episode_of(state), runtime.context.window
    plans = _plans(state)
    known = beliefs[number]
    me = worker_of(number, known, plans[number])
    knowledge = knowledge_of(
        episode,
        known,
        [me],
        placed=state["assessed"]["placed"],
        in_hands=state["assessed"]["held"],
        finds=state["finds"],
        found_before=state["found_before"],
    )
    observation = household.world_of(state).observe(number)
    others = [(n, plan) for n, plan in enumerate(plans) if n != number and plan is not None]
    return Situation(
        **dict(knowledge),
        me=number,
        taken=[plan.macro.target for _, plan in others if plan.macro.kind in household.CLAIMING],
        options=options_of(observation, known, knowledge, episode.goals, plans[number]),
        name=NAMES[number],
        task=_task(knowledge),
        progress=_progress(state["assessed"]),
        observation=_seen(known, known.step),
        belief=known.words(),
        done="\n".join(state["members"][number]["history"][-window:]),
        dialogue="\n".join(f"{NAMES[n]}: {plan.macro}" for n, plan in others),
    ).model_dump(mode="json")


def _plans(state: State) -> list[Plan | None]:
    return [Plan.model_validate(member["plan"]) if member["plan"] else None for member in state["members"]]


def _task(knowledge: Knowledge) -> str:
    return "; ".join(
        f"put {need.wanted} {need.thing} {need.relation} {need.label}" for need in knowledge.needs
    )


def _progress(progress: Progress) -> str:
    placed = ", ".join(f"{name}: {count}" for name, count in progress["placed"].items())
    held = ", ".join(f"{count} {name}" for name, count in progress["held"].items()) or "nothing"
    found = ", ".join(f"{count} {name}" for name, count in progress["found"].items()) or "nothing"
    return f"Placed: {placed}. In hands: {held}. Found so far: {found}."


def since(beliefs: Beliefs, step: int) -> Beliefs:
    """Return what was seen at a step or later; the rest is out of the window."""
    return beliefs.model_copy(
        update={
            "things": {key: known for key, known in beliefs.things.items() if known.step >= step},
            "checked": {key: at for key, at in beliefs.checked.items() if at >= step},
            "room_seen": {key: at for key, at in beliefs.room_seen.items() if at >= step},
            "lost": {key: at for key, at in beliefs.lost.items() if at >= step},
        }
    )


def _seen(beliefs: Beliefs, step: int) -> str:
    return since(beliefs, step).words()


async def negotiate(state: Asked, runtime: Context) -> Update:
    """Ask one member which action it would take next (eq. 2)."""
    situation = Situation.model_validate(state["situation"])
    marks = (runtime.context.seed, "member", situation.me, state["round"])
    at_random = lapse(runtime.context.member_lapses, len(situation.options), *marks)
    try:
        asked = await ask(propose_action, situation, runtime.context.member)
    except BadAnswer as bad:
        return _fallen_back(situation, bad)
    choice = asked.value.choice if at_random is None else at_random
    proposal = Proposed(
        member=situation.me, reason=asked.value.reason, option=situation.options[choice].model_dump()
    )
    return {
        "proposals": [proposal],
        "counters": answered(asked),
        "answered_by": [f"member: {asked.responder}"],
    }


def _fallen_back(situation: Situation, bad: BadAnswer) -> Update:
    """Go on with what is under way, else do what is nearest, where a member's answer stayed unusable."""
    option = min(
        situation.options,
        key=lambda each: (not each.under_way, each.kind == "wait", each.steps),
    )
    proposal = Proposed(member=situation.me, reason=f"fallback: {bad}", option=option.model_dump())
    return {"proposals": [proposal], "counters": unusable()}


def who_decides(state: State, runtime: Context) -> Literal["allocate", "follow_proposals"]:
    """Let the manager decide; without allocation everybody does as it proposed."""
    return "allocate" if runtime.context.allocation else "follow_proposals"


async def follow_proposals(state: State, runtime: Context) -> Update:
    """Carry out what each member proposed (the paper's ablation: without allocation)."""
    runtime.stream_writer({"step": "follow_proposals", "proposals": _told(state)})
    return _decided(state, [Option.model_validate(each["option"]) for each in _in_order(state)], "")


def _in_order(state: State) -> list[Proposed]:
    return sorted(state["proposals"], key=lambda proposed: proposed["member"])


def _told(state: State) -> list[dict[str, Any]]:
    return [
        {
            "member": NAMES[each["member"]],
            "reason": each["reason"],
            "action": str(Option.model_validate(each["option"])),
        }
        for each in _in_order(state)
    ]


def _decided(state: State, options: Sequence[Option], reason: str) -> Update:
    macros = [macro_of(option) for option in options]
    actions = [f"step {state['steps']}: {NAMES[n]}: {macro}" for n, macro in enumerate(macros)]
    return {
        "decided": [macro.model_dump(mode="json") for macro in macros],
        "actions": [*state["actions"], *actions],
        "reason": reason,
    }


async def allocate(state: State, runtime: Context) -> Update:
    """Let the manager choose the joint action from X, C, p and T (eqs. 3 and 4)."""
    beliefs, team = beliefs_of(state), known_to_the_manager(state, runtime)
    given = _cross_context(state, runtime, beliefs, team)
    proposed = [Option.model_validate(each["option"]) for each in _in_order(state)]
    try:
        asked = await ask(allocate_actions, given, runtime.context.manager)
    except BadAnswer as bad:
        runtime.stream_writer({"step": "allocate", "fallback": str(bad), "proposals": _told(state)})
        return _decided(state, proposed, f"fallback: {bad}") | {"counters": unusable(len(proposed))}
    chosen = [_chosen(state, runtime, report, asked.value.of(n)) for n, report in enumerate(given.members)]
    runtime.stream_writer(
        {
            "step": "allocate",
            "proposals": _told(state),
            "allocation": [str(option) for option in chosen],
            "reason": asked.value.reason,
        }
    )
    return _decided(state, chosen, asked.value.reason) | {
        "members": _informed(state, beliefs, team, chosen),
        "counters": answered(asked),
        "answered_by": [f"manager: {asked.responder}"],
    }


def _chosen(state: State, runtime: Context, report: Report, choice: int) -> Option:
    marks = (runtime.context.seed, "manager", report.worker.number, state["round"])
    at_random = lapse(runtime.context.manager_lapses, len(report.options), *marks)
    return report.options[choice if at_random is None else at_random]


def known_to_the_manager(state: State, runtime: Context) -> Beliefs:
    """Put together what the manager knows: the synopses, and what the members report of late."""
    team = Beliefs(agent=-1, step=state["steps"])
    for told in state["synopses"]:
        _recall(team, told)
    oldest = state["steps"] - runtime.context.window
    for known in beliefs_of(state):
        team.rooms = known.rooms
        team.merge(since(known, oldest))
    return team


def _recall(team: Beliefs, told: Told) -> None:
    """Know again what a synopsis says, about what it names."""
    synopsis = Synopsis.model_validate(told["synopsis"])
    named = {each["id"]: Known.model_validate(each) for each in told["named"]}
    recalled = Beliefs(agent=-1, step=told["step"], things=named)
    recalled.checked = dict.fromkeys(synopsis.checked, told["step"])
    recalled.room_seen = dict.fromkeys(synopsis.explored, told["step"])
    team.merge(recalled)


def _cross_context(state: State, runtime: Context, beliefs: Sequence[Beliefs], team: Beliefs) -> CrossContext:
    """Collect each member's proposal, belief and observation (eq. 3), with C, p and T."""
    episode, plans = episode_of(state), _plans(state)
    workers = [worker_of(number, known, plans[number]) for number, known in enumerate(beliefs)]
    knowledge = knowledge_of(
        episode,
        team,
        workers,
        placed=state["assessed"]["placed"],
        in_hands=state["assessed"]["held"],
        finds=state["finds"],
        found_before=state["found_before"],
    )
    oldest = state["steps"] - runtime.context.window
    return CrossContext(
        **dict(knowledge),
        task=_task(knowledge),
        progress=_progress(state["assessed"]),
        synopses="\n".join(Synopsis.model_validate(told["synopsis"]).narrative for told in state["synopses"]),
        members=[
            _report(state, team, knowledge, worker, proposed, _seen(beliefs[worker.number], oldest))
            for worker, proposed in zip(workers, _in_order(state), strict=True)
        ],
    )


def _report(  # noqa: PLR0913, PLR0917
    state: State, team: Beliefs, knowledge: Knowledge, worker: Worker, proposed: Proposed, belief: str
) -> Report:
    """Say of one member what it sees, believes of late and proposes, and what it may do.

    It may do what is possible by what it and the manager know together: a member says so where something
    is not as the manager believes.
    """
    episode = episode_of(state)
    own = beliefs_of(state)[worker.number]
    told = own.model_copy(deep=True)
    told.merge(team)
    observation = household.world_of(state).observe(worker.number)
    options = options_of(observation, told, knowledge, episode.goals, _plans(state)[worker.number])
    wish = Option.model_validate(proposed["option"])
    same = [n for n, option in enumerate(options) if (option.kind, option.target) == (wish.kind, wish.target)]
    options = options if same else [*options, wish]
    return Report(
        worker=worker,
        proposal=same[0] if same else len(options) - 1,
        reason=proposed["reason"],
        observation=_seen(own, own.step),
        belief=belief,
        options=options,
    )


def _informed(
    state: State, beliefs: Sequence[Beliefs], team: Beliefs, chosen: Sequence[Option]
) -> list[household.Member]:
    """Tell each member where the target of its action is, where the manager knows more of it."""
    for known, option in zip(beliefs, chosen, strict=True):
        target = team.things.get(option.target) if option.target is not None else None
        if target is not None:
            known.merge(Beliefs(agent=-1, things={target.id: target}))
    return [
        {**member, "beliefs": known.model_dump(mode="json")}
        for member, known in zip(state["members"], beliefs, strict=True)
    ]


async def execute(state: State, runtime: Context) -> Update:
    """Translate the joint action into low-level steps."""
    return await household.execute(state, runtime)


async def summarise(state: State, runtime: Context) -> Update:
    """Condense what happened since the last change into one synopsis (algorithm 1, lines 11 to 16)."""
    beliefs = beliefs_of(state)
    team = together([since(known, state["last_step"] + 1) for known in beliefs])
    given = _passage(state, beliefs, team)
    now = {"last": state["assessed"], "last_step": state["steps"]}
    try:
        asked = await ask(summarise_passage, given, runtime.context.manager, lane="user")
    except BadAnswer as bad:
        runtime.stream_writer({"step": "summarise", "fallback": str(bad)})
        return {"counters": unusable()}  # the record stays, and the next synopsis covers it
    told = Told(
        step=state["steps"],
        change=given.change,
        synopsis=asked.value.model_dump(),
        named=_named(asked.value, team),
    )
    runtime.stream_writer({"step": "summarise", "synopsis": asked.value.narrative})
    return now | {
        "actions": [],
        "synopses": [*state["synopses"], told],
        "counters": answered(asked),
        "answered_by": [f"manager: {asked.responder}"],
    }


def _passage(state: State, beliefs: Sequence[Beliefs], team: Beliefs) -> Passage:
    """Retrieve the joint actions and beliefs since the last synopsis, and record what changed."""
    workers = [
        worker_of(number, known, plan)
        for number, (known, plan) in enumerate(zip(beliefs, _plans(state), strict=True))
    ]
    knowledge = knowledge_of(episode_of(state), team, workers)
    oldest = state["last_step"] + 1
    return Passage(
        task=_task(knowledge),
        actions="\n".join(state["actions"]),
        beliefs="\n".join(f"{NAMES[n]}: {_seen(known, oldest)}" for n, known in enumerate(beliefs)),
        change=_change(state["last"], state["assessed"]),
        progress=_progress(state["assessed"]),
        items=knowledge.items,
        places={each.id: each.room if each.holder is None else each.holder for each in team.objects()},
        containers=knowledge.containers,
        rooms=[room for room in knowledge.rooms if room.seen is not None],
        workers=workers,
    )


def _change(before: Progress, now: Progress) -> str:
    """Say what Δp is, in words."""
    parts = [
        f"{what}: {', '.join(changed)}"
        for what, changed in (
            ("placed", _differences(before["placed"], now["placed"])),
            ("in hands", _differences(before["held"], now["held"])),
            ("found", _differences(before["found"], now["found"])),
        )
        if changed
    ]
    return "; ".join(parts) or "nothing"


def _differences(before: dict[str, int], now: dict[str, int]) -> list[str]:
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in {**before, **now}}
    return [f"{change:+d} {name}" for name, change in changes.items() if change]


def _named(synopsis: Synopsis, team: Beliefs) -> list[dict[str, Any]]:
    """Keep the things and places that the synopsis names, as they are; no others."""
    ids = {
        *synopsis.placed,
        *synopsis.checked,
        *synopsis.unchecked,
        *(found.thing for found in synopsis.found),
        *(found.place for found in synopsis.found),
        *(promise.target for promise in synopsis.promised),
    }
    return [team.things[each].model_dump(mode="json") for each in sorted(ids) if each in team.things]


async def finish(state: State, runtime: Context) -> Update:
    """Say how the episode ended; where that is wanted, keep what it taught for the next in this apartment."""
    if runtime.context.remember:
        remembered = _taught(state)
        source = Source(tasks=[remembered.episode])
        change = Change(reason=f"played in {state['steps']} steps", actor="manager", source=source)
        await _memory(state["episode"], runtime).keep(remembered, change=change)
    runtime.stream_writer({"step": "finish", "success": state["success"], "steps": state["steps"]})
    return {}


def _taught(state: State) -> Remembered:
    """Put together what the episode taught; how containers were left is no news of the next episode."""
    team, episode = together(beliefs_of(state)), episode_of(state)
    names = {str(thing.id): thing.name for thing in episode.things}
    finds: dict[str, list[str]] = {}
    for thing, place in state["finds"].items():
        finds.setdefault(names[thing], []).append(place)
    return Remembered(
        run=state["run"],
        episode=episode.id,
        category=episode.category,
        success=state["success"],
        steps=state["steps"],
        synopses=[Synopsis.model_validate(told["synopsis"]).narrative for told in state["synopses"]],
        finds=finds,
        furniture=[_as_at_first(each) for each in team.things.values() if each.category != "object"],
    )


def _as_at_first(known: Known) -> dict[str, Any]:
    closed = None if known.is_open is None else False
    return known.model_copy(update={"is_open": closed, "step": 0}).model_dump(mode="json")
