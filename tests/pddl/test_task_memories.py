"""The eight memories of a team's tasks: what each keeps, recalls and shows, as its description says."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from mneme.core.errors import BadInput, PromptTooLong
from mneme.environments.turns import Turn, read_turn, read_turns, split_turns
from mneme.library.teams.team import load_team
from mneme.models.asking.counting import counting, tokens
from mneme.nodes.task_memories import g_memory as insights
from mneme.nodes.task_memories.chat_dev import PHASE
from mneme.nodes.task_memories.interface import FinishedTask, MemoryServices, Role, Task, TaskMemory
from mneme.nodes.task_memories.kinds import MEMORIES_BY_NAME, open_memory
from mneme.nodes.task_memories.recollecting import raw, retention
from mneme.prompts.discussion.memory_template import departures
from mneme.prompts.task_memories.task_memories import (
    Course,
    Operation,
    PhaseSummary,
    Relevance,
    Revision,
    Rulebook,
    is_short,
    revise_insights,
    sentences,
    summarise_trial,
)
from mneme.rules.registry import answer as by_rule
from mneme.rules.task_memories import NOT_AGAIN, key_turns
from mneme.stores.discussions.agent_memory import AgentMemory
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source
from mneme.stores.task_memories.trials import Insight, TrialRecord, Trials
from tests.doubles.scripts import script

GOAL = "The goal is to satisfy the following conditions: Ball1 is at kitchen."
TEMPLATE = {"facts": ["What was seen"], "plan": "What to do next"}
ROLES = {"solver": Role("Solves.", TEMPLATE), "second": Role("Solves otherwise.", TEMPLATE)}
NOTHING = "The action is not valid and has no effect."


def services(ledger: Ledger, name: str, **more: Any) -> MemoryServices:
    known: dict[str, Any] = {"who": "rules", "trial": "t0", "window": 2000, "team": "team", "roles": ROLES}
    given = {**known, **more}
    return MemoryServices(ledger=ledger, trials=Trials(ledger, given["team"], name), **given)


def memory(ledger: Ledger, name: str, **more: Any) -> TaskMemory:
    return open_memory(name, services(ledger, name, **more))


def task(goal: str = GOAL) -> Task:
    return Task(id="task", goal=goal, text=f"{goal}\nRules.", domain="test")


def turns(*said: str | tuple[str, str]) -> list[Turn]:
    pairs = [(each, f"Seen after {each}.") if isinstance(each, str) else each for each in said]
    return [
        Turn(number=number, agent="solver", output=output, outcome=outcome)
        for number, (output, outcome) in enumerate(pairs, 1)
    ]


def trial(name: str, goal: str, *said: str | tuple[str, str], success: bool = True) -> FinishedTask:
    done = turns(*(said or ("pick ball1", "drop ball1")))
    return FinishedTask(id=name, task=task(goal), turns=done, reward=1.0 if success else 0.4, success=success)


async def shown(told: TaskMemory, goal: str = GOAL, so_far: Sequence[Turn] = ()) -> str:
    held = await told.recall(task(goal))
    return told.context(task(goal), held, so_far, "solver").memory


@pytest.mark.parametrize("name", MEMORIES_BY_NAME)
async def test_every_memory_goes_through_a_whole_task(edge_ledger: Ledger, name: str) -> None:
    for run in range(2):
        at_work = memory(edge_ledger, name, trial=f"t{run}")
        held = await at_work.recall(task())
        done = turns(*(f"step {number}" for number in range(12)))
        for count in range(1, len(done) + 1):
            held = await at_work.prepare(task(), held, done[: count - 1])
            seen = at_work.context(task(), held, done[: count - 1], "solver")
            assert set(seen.turns) <= set(done[: count - 1])
            held = await at_work.observe(task(), held, done[:count])
        ended = FinishedTask(id=f"t{run}", task=task(), turns=done, reward=1.0, success=True)
        await at_work.remember(ended, held)


async def test_no_memory_shows_the_newest_turns_that_fit_and_keeps_nothing(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "none", window=120)
    long = turns(*(f"step {number} of a long way" for number in range(20)))
    seen = told.context(task(), {}, long, "solver")
    assert seen.memory == "" and 0 < len(seen.turns) < len(long)
    assert seen.turns == long[-len(seen.turns) :]
    assert tokens(task().text) + sum(tokens(str(turn)) for turn in seen.turns) <= 120
    await told.remember(trial("t0", GOAL), {})
    assert await edge_ledger.count() == 0
    with pytest.raises(PromptTooLong):
        memory(edge_ledger, "none", window=10).context(task(), {}, [], "solver")


async def test_an_unknown_memory_is_refused(edge_ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="no memory elephant"):
        open_memory("elephant", services(edge_ledger, "none"))


async def test_meta_gpt_shows_the_nearest_success_as_it_was(ledger: Ledger) -> None:
    told = memory(ledger, "meta_gpt")
    await told.remember(trial("near", "Bring ball2 to the kitchen.", "pick ball2", "drop ball2"), {})
    await told.remember(trial("far", "Mix a green cocktail.", "shake cocktail"), {})
    await told.remember(trial("lost", "Bring ball1 to the kitchen.", "juggle ball1", success=False), {})
    seen = await shown(told, "Bring ball1 to the kitchen.")
    assert "[1] solver: pick ball2\nObservation: Seen after pick ball2." in seen
    assert "shake" not in seen and "juggle" not in seen


async def test_a_trial_is_kept_once_and_by_one_memory_of_one_team(ledger: Ledger) -> None:
    told = memory(ledger, "meta_gpt")
    for _ in range(2):
        await told.remember(trial("t0", GOAL), {})
    assert await told.services.trials.count() == 1
    assert await shown(told)
    assert not await shown(memory(ledger, "meta_gpt", team="others"))
    assert not await shown(memory(ledger, "voyager"))


async def test_a_recollection_leaves_room_for_turns(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "meta_gpt", window=400)
    await told.remember(trial("t0", GOAL, *(f"step {number}" for number in range(100))), {})
    held = await told.recall(task())
    now = turns("pick ball1")
    seen = told.context(task(), held, now, "solver")
    assert "left out" in seen.memory and seen.turns == now
    assert tokens(seen.memory) <= (400 - tokens(task().text)) * 0.5


async def test_voyager_finds_a_trial_by_what_was_done(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "voyager")
    with counting() as asked:
        await told.remember(trial("balls", "First goal.", "juggle torches", "juggle knives"), {})
        await told.remember(trial("drinks", "Second goal.", "shake cocktail", "pour cocktail"), {})
    (found,) = await told.services.trials.nearest("Somebody who can juggle knives", 1)
    assert found.id == "balls" and "juggle torches" in found.key
    assert asked["calls"] == 2 and asked["prompt_tokens"] > 0


def test_a_summary_has_six_sentences_at_most_however_long_the_talk() -> None:
    speech = "We should. Not! Why? " * 60
    given = Course(goal=speech, result="failed.", steps=[f"[{n}] a: {n} {speech}" for n in range(1, 32)])
    answer = by_rule(summarise_trial, given)
    assert 0 < sentences(answer.summary) <= 6
    is_short(given, answer)
    with pytest.raises(ValueError, match="7 sentences"):
        is_short(given, type(answer)(summary="One. " * 7))


async def test_generative_rates_twice_as_many_and_shows_the_most_relevant(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "generative", who="scripted:taste")
    for name, goal in (("a", "Bring ball1 home."), ("b", "Bring ball1 away."), ("c", "Mix a drink.")):
        await told.remember(trial(name, goal, f"act {name}"), {})
    nearest = [each.id for each in await told.services.trials.nearest("Bring ball1 home.", 2)]
    ratings = [Relevance(reason="Hardly.", score=2), Relevance(reason="Very.", score=9)]
    script("taste", {"rate_relevance": ratings})
    with counting() as asked:
        held = await told.recall(task("Bring ball1 home."))
    assert held["recalled"] == nearest[1:], "the farther one was rated higher"
    assert asked["calls"] == 2


async def test_memory_bank_forgets_all_but_the_last_seven_turns(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "memory_bank")
    long = turns(*(f"step {number}" for number in range(20)))
    assert told.context(task(), {}, long, "solver").turns == long[-7:]
    assert retention(6) == pytest.approx(math.exp(-6 / 5)) and retention(6) >= 0.3 > retention(7)
    await told.remember(trial("t0", GOAL), {})
    assert "An earlier task that succeeded" in await shown(told), "it recalls as Voyager does"


async def test_chat_dev_shows_a_summary_at_each_tenth_prompt_alone(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "chat_dev")
    held = await told.recall(task())
    done = turns(*(("jump", NOTHING) if number == 4 else f"step {number}" for number in range(1, 25)))
    summed_up: dict[int, str] = {}
    for so_far in range(2 * PHASE):
        held = await told.prepare(task(), held, done[:so_far])
        seen = told.context(task(), held, done[:so_far], "solver")
        if seen.memory:
            summed_up[so_far] = seen.memory
        assert (seen.turns == []) == (bool(seen.memory) or not so_far), "a summary, or all turns"
    assert list(summed_up) == [8, 18], "one prompt was composed before the first step"
    assert "step 1; step 2; step 3; step 5" in summed_up[8] and "Without effect: jump" in summed_up[8]
    assert "step 1; step 2" in summed_up[18] and "step 18" in summed_up[18]


async def test_a_summary_that_cannot_be_used_leaves_the_turns_and_is_complained_of(
    edge_ledger: Ledger,
) -> None:
    script("mute", {"summarise_phase": ["no JSON"]})
    told = memory(edge_ledger, "chat_dev", who="scripted:mute")
    held = await told.prepare(task(), {"prompts": PHASE - 1}, turns("step 1"))
    assert told.context(task(), held, turns("step 1"), "solver").turns == turns("step 1")
    assert held["prompts"] == PHASE and len(told.services.complaints) == 1


async def test_a_summary_too_long_for_the_window_is_cut(edge_ledger: Ledger) -> None:
    script("wordy", {"summarise_phase": [PhaseSummary(summary="blah " * 700)]})
    told = memory(edge_ledger, "chat_dev", who="scripted:wordy", window=300)
    held = await told.prepare(task(), {"prompts": PHASE - 1}, turns("step 1"))
    seen = told.context(task(), held, turns("step 1", "step 2"), "solver")
    assert tokens(task().text) + tokens(seen.memory) <= 300


async def test_g_memory_links_similar_tasks_and_withholds_failures(ledger: Ledger) -> None:
    told = memory(ledger, "g_memory")
    ball = "Carry ball{} quickly through the small kitchen of an old house near the green valley."
    await told.remember(trial("t1", ball.format(1), "pick ball1", ("fly", NOTHING), "drop ball1"), {})
    await told.remember(trial("t2", "Shake a cocktail.", "shake"), {})
    lost = trial("t3", ball.format(2), *[("fly away", NOTHING)] * 3, success=False)
    await told.remember(lost, {})
    trials = told.services.trials
    first, third = await trials.get("t1"), await trials.get("t3")
    assert first and third and third.neighbours == ["t1"], "an edge only where tasks are similar"
    assert [each.id for each in await trials.neighbours(first)] == ["t3"], "edges hold both ways"
    assert first.key_steps == ["pick ball1", "drop ball1"]
    assert third.fail_reason == "'fly away' was tried 3 times, though it had no effect."
    seen = await shown(told, ball.format(3))
    assert "1. pick ball1\n2. drop ball1" in seen and "[1] solver: pick ball1\nObservation:" in seen
    assert "shake" not in seen and "fly" not in seen, "neither what failed nor what had no effect"


async def test_g_memory_shows_the_nearest_success_where_the_neighbourhood_has_none(ledger: Ledger) -> None:
    told = memory(ledger, "g_memory")
    await told.remember(trial("t1", "Shake a cocktail.", "shake cocktail"), {})
    await told.remember(trial("t2", "Carry ball2 to the attic.", "fly away", success=False), {})
    held = await told.recall(task("Carry ball3 to the attic."))
    assert held["recalled"] == ["t1"] and "shake cocktail" in held["memory"]


async def test_insights_are_those_that_related_tasks_bear_out(ledger: Ledger) -> None:
    script("role", {"rate_relevance": [Relevance(reason="So.", score=5)] * 2})
    told = memory(ledger, "g_memory", who="scripted:role")
    for name, goal in (("ball", "Carry ball1 to the attic."), ("tyre", "Change the tyre of the car.")):
        await told.services.trials.keep(raw(trial(name, goal), goal), CHANGE)
    known = [Insight(id=name, text=f"On {name}s.", trials=[name]) for name in ("tyre", "ball")]
    await told.services.trials.revise([(None, each) for each in [*known, insight(7)]], CHANGE)
    for number in range(4):  # of the tyre's, none is among the four nearest successes to a ball's
        goal = f"Carry ball{number} to the attic."
        await told.services.trials.keep(raw(trial(f"b{number}", goal), goal), CHANGE)
    held = await told.recall(task("Carry ball9 to the attic."))
    assert held["insights"] in (["ball"], []) and "tyre" not in held["insights"]
    if held["insights"]:
        assert "On balls." in told.context(task(), held, [], "solver").memory


async def test_insights_come_every_five_tasks_and_are_paid_by_use(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "g_memory")
    for number in range(insights.REVISED_EVERY - 1):
        await told.remember(trial(f"t{number}", f"Bring ball{number} home.", success=number > 0), {})
        assert await told.services.trials.insights() == []
    await told.remember(trial("t4", "Bring ball4 home."), {})
    standing = await told.services.trials.insights()
    assert NOT_AGAIN in {each.text for each in standing}, "drawn from a success beside a failure"
    assert any("pick, then drop" in each.text for each in standing)
    assert all(set(each.trials) <= {f"t{number}" for number in range(5)} for each in standing)
    held = await told.recall(task("Bring ball5 home."))
    assert set(held["insights"]) <= {each.id for each in standing} and held["insights"]
    before = await scores(told, held)
    for _ in range(2):  # a replayed step pays once
        await told.remember(trial("t5", "Bring ball5 home."), held)
    assert await scores(told, held) == {name: score + 1 for name, score in before.items()}
    await told.remember(trial("t6", "Bring ball6 home.", success=False), held)
    assert await scores(told, held) == {name: score - 1 for name, score in before.items() if score > 1}


async def scores(told: TaskMemory, held: dict[str, Any]) -> dict[str, int]:
    """Return the scores of the insights that were shown, as far as they still stand."""
    standing = await told.services.trials.insights()
    return {each.id: each.score for each in standing if each.id in held["insights"]}


CHANGE = Change(reason="test", actor="test", source=Source(tasks=["t9"]))


def insight(number: int, score: int = 2) -> Insight:
    return Insight(id=f"i{number}", text=f"Rule {number}.", score=score)


def operation(kind: Any, rule: int = -1, text: str = "") -> Operation:
    return Operation(reason="Because.", kind=kind, rule=rule, text=text)


def carried_out(
    standing: list[Insight], operations: list[Operation]
) -> list[tuple[Insight | None, Insight | None]]:
    return insights.carried_out(standing, operations, standing, ["t9"], "t9")


def test_operations_change_scores_as_described() -> None:
    standing = [insight(0), insight(1), insight(2, 1)]
    done = [operation("AGREE", 0), operation("EDIT", 1, "Better."), operation("REMOVE", 2)]
    kept = [after for _, after in carried_out(standing, done)]
    assert [(each.text, each.score) if each else None for each in kept] == [
        ("Rule 0.", 3),
        ("Better.", 3),
        None,
    ]
    (removed,) = carried_out([insight(0, 3)], [operation("REMOVE", 0)])
    assert removed[1] and removed[1].score == 2


def test_a_full_list_removes_harder_and_takes_in_no_more_than_there_is_room_for() -> None:
    full = [insight(number) for number in range(insights.MAX_RULES)]
    done = [operation("REMOVE", 3), operation("ADD", text="New."), operation("ADD", text="Newer.")]
    changed = carried_out(full, done)
    assert changed[0] == (full[3], None), "2 - 3 is below 0"
    assert [after.text for before, after in changed if before is None and after] == ["New."]


def test_operations_on_rules_that_are_not_there_are_refused() -> None:
    wrong = Revision(operations=[operation("AGREE", 4)])
    with pytest.raises(ValueError, match="rule is 4"):
        revise_insights.verify(Rulebook(rules=["One."], succeeded=[], failed=[]), wrong)


async def test_insights_about_the_same_are_merged_every_twenty_tasks(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "g_memory")
    trials = told.services.trials
    alike = [
        Insight(id="a", text="Never repeat an action that had no effect.", score=4),
        Insight(id="b", text="Never repeat an action that had no effect at all.", score=3),
        Insight(id="c", text="Open every container first.", score=2),
    ]
    await trials.revise([(None, each) for each in alike], CHANGE)
    clusters = await trials.clusters()
    assert [[each.id for each in cluster] for cluster in clusters] == [["a", "b"]]
    assert isinstance(told, insights.GMemory)
    await told.merge(told.change(trial("t20", GOAL)))
    left = await trials.insights()
    assert [(each.id, each.score) for each in left] == [("a", 4), ("c", 2)]
    history = await edge_ledger.history(("teams", "team", "task_memory", "g_memory", "insights"), "b")
    assert [version.event for version in history] == ["insert", "retire"], "nothing is lost"


async def test_intrinsic_memories_are_private_versioned_and_keep_their_slots(ledger: Ledger) -> None:
    told = memory(ledger, "intrinsic")
    held = await told.recall(task())
    first = turns(("fetch wrench", "You have wrench."))
    held = await told.observe(task(), held, first)
    again = await told.observe(task(), {**held, "solver": {**held["solver"], "version": 1}}, first)
    assert again["solver"]["version"] == held["solver"]["version"] == 2, "a replayed turn is kept once"
    mine = told.context(task(), held, first, "solver").memory
    assert "You have wrench." in mine
    assert "wrench" not in told.context(task(), held, [], "second").memory
    store = AgentMemory(ledger, ("teams", "team", "task_memory", "intrinsic", "t0"), "solver")
    versions = await store.history()
    assert [each.turn for each in versions] == [0, 1]
    assert all(not departures(TEMPLATE, each.memory) for each in versions)
    assert "+" in await store.diff(0, 1)
    assert await memory(ledger, "intrinsic", trial="t1").recall(task()) != held, "a task begins anew"


async def test_intrinsic_memory_tells_what_worked_what_failed_and_what_holds(edge_ledger: Ledger) -> None:
    told = memory(edge_ledger, "intrinsic")
    told.services.roles = {"solver": Role("plans", load_team("pddl").role("solver").memory)}
    held = await told.recall(task())
    done = turns(
        ("open boot", "Boot is open. Jack is in boot."),
        ("inflate r1", "The action is not valid and has no effect. Its conditions do not hold."),
        ("check valid actions", "Valid actions: close boot; fetch jack boot; check valid actions"),
        ("close boot", "Boot is closed."),
    )
    for count in range(1, len(done) + 1):
        held = await told.observe(task(), held, done[:count])
    known = held["solver"]["memory"]
    assert known["facts_learned"] == ["Boot is open.", "Jack is in boot.", "Boot is closed."], (
        "rules judge none"
    )
    assert known["actions"]["worked_in_order"] == ["open boot.", "check valid actions.", "close boot."]
    assert [each.partition(".")[0] for each in known["actions"]["failed"]] == ["inflate r1"]
    assert known["subgoals"] == {"done": [], "open": []}


async def test_trials_are_versions_in_the_ledger_that_say_where_they_come_from(ledger: Ledger) -> None:
    told = memory(ledger, "meta_gpt")
    await told.remember(trial("t0", GOAL), {})
    (version,) = await ledger.history(("teams", "team", "task_memory", "meta_gpt", "trials"), "t0")
    assert version.shelf == "succeeded" and version.change.source.tasks == ["t0"]
    assert TrialRecord.model_validate(version.value).trajectory[0].startswith("[1] solver: pick ball1")


def test_turns_are_read_back_from_their_text() -> None:
    told = turns("pick a", ("jump", NOTHING), ("think: open subgoal: X.", "OK. Thinking took a step."))
    texts = [str(turn) for turn in told]
    assert split_turns("\n".join(texts)) == texts
    read = read_turns(texts)
    assert [(each.worked, each.failed, bool(each.thought)) for each in read] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert read_turn("no turn at all") is None


def test_ways_back_are_no_key_steps() -> None:
    here, there = "A is a. B is b. C is c. I am here.", "A is a. B is b. C is c. I am there."
    read = read_turns(
        [str(turn) for turn in turns(("go", here), ("leave", there), ("return", here), ("x", there))]
    )
    assert key_turns(read) == [0, 3]
