"""Every sentence that MiTa's members and manager are told, over whole episodes, is so."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from mneme.environments.household.episode import GOAL_CATEGORIES, Episode
from mneme.environments.household.generator import generate
from mneme.graphs.mita import builder
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.mita_state import in_words
from mneme.prompts.household.mita import allocate_actions, propose_action
from mneme.prompts.household.synopsis import summarise_passage
from tests.doubles.questions import schema_of
from tests.household.trace_of_truth import History
from tests.household.truth import NAMES, Reader, UntrueError, sections
from tests.household.truth_of_questions import asked

PROMPTS: dict[str, Any] = {each.name: each for each in (propose_action, allocate_actions, summarise_passage)}


class Questions(BaseCallbackHandler):
    """Keeps what was asked, as a model would read it."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str, str, str]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
        """Keep one question."""
        if name in PROMPTS:
            said = (PROMPTS[name].user_text(inputs), getattr(inputs, "name", ""))
            self.asked.append((getattr(inputs, "step", -1), name, *said))


async def untrue(episode: Episode, **more: Any) -> tuple[Counter[str], list[str]]:
    """Play an episode; return how many parts of each question were read, and what in them was not so."""
    kept, history = Questions(), History(episode)
    context = HouseholdContext(member="rules", manager="rules", **more)
    given: Any = {"episode": episode.model_dump(mode="json")}
    config: Any = {"callbacks": [kept], "recursion_limit": 2000}
    stream = builder.compile().astream(given, config, context=context, stream_mode=["custom", "values"])
    state: dict[str, Any] = {}
    kept_synopses: dict[str, dict[str, Any]] = {}
    records: list[int] = []
    async for kind, event in stream:
        if kind == "values":
            state = event
            kept_synopses = {in_words(each): each for each in state.get("synopses", [])} | kept_synopses
        elif event["step"] == "execute":
            history.play(event["frames"])
        elif event["step"] == "summarise":
            records.append(len(history.moments) - 1)
    read, wrong = Counter[str](), []
    last, steps = -1, iter(records)
    for step, question, text, member in kept.asked:
        now = next(steps) if question == "summarise_passage" else step
        reader = Reader(history, now, context.window, last)
        read["overruled"] += "\nManager at step " in text
        last = now if question == "summarise_passage" else last
        for check in asked(reader, question, text, member):
            read[question] += 1
            try:
                check()
            except UntrueError as error:
                wrong.append(f"step {now}, {question}: {error}")
    for step, question, text, _ in kept.asked:
        if question == "allocate_actions":
            told = sections(text)["What happened so far"].splitlines()
            wrong += [f"step {step}: {line}" for line in told if line not in {*kept_synopses, "(none)"}]
    for each in kept_synopses.values():
        put_together = "merged" in each
        last = max((step for step in records if step < each["step"]), default=-1)
        read["put together" if put_together else "synopsis"] += 1
        try:
            Reader(history, each["step"], context.window, -1 if put_together else last).synopsis(
                each["synopsis"], put_together=put_together
            )
        except UntrueError as error:
            wrong.append(f"step {each['step']}, synopsis: {error}")
    return read, wrong


@pytest.mark.parametrize(("seed", "category", "agents", "more"), [
    (5, "Prepare a Meal", 3, {"window": 3}),
    (26, "Put Groceries", 3, {"manager_lapses": 0.2, "member_lapses": 0.2}),
])  # fmt: skip
async def test_what_agents_are_told_is_so(
    seed: int, category: str, agents: int, more: dict[str, Any]
) -> None:
    read, wrong = await untrue(generate(seed, category, agents), **more)
    assert not wrong, f"{len(wrong)} of {sum(read.values())}: {wrong[:5]}"
    assert min(read[each] for each in (*PROMPTS, "synopsis", "put together", "overruled")) > 0


async def test_only_members_with_a_choice_whose_situation_changed_are_asked() -> None:
    asked_of: dict[str, list[tuple[Any, ...]]] = {name: [] for name in NAMES}

    class Situations(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
            if name == propose_action.name:
                may = {(option.kind, option.target) for option in inputs.options}
                goes_on = any(option.under_way for option in inputs.options)
                asked_of[inputs.name].append((may, inputs.progress, inputs.dialogue, goes_on))

    context = HouseholdContext(member="rules", manager="rules")
    config: Any = {"callbacks": [Situations()], "recursion_limit": 2000}
    given: Any = {"episode": generate(12, "Prepare Tea", 3).model_dump(mode="json")}
    ended = await builder.compile().ainvoke(given, config, context=context)
    every = [each for situations in asked_of.values() for each in situations]
    assert ended["success"] and 3 < len(every) < 3 * ended["counters"]["rounds"]
    assert all(len(may) > 1 for may, *_ in every)
    for situations in asked_of.values():
        for before, now in pairwise(situations):
            assert now[:3] != before[:3] or not now[3]


async def test_a_synopsis_is_offered_no_place_that_is_not_named() -> None:
    asked_for: list[Any] = []

    class Passages(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
            if name == summarise_passage.name:
                asked_for.append(inputs)

    context = HouseholdContext(member="rules", manager="rules")
    config: Any = {"callbacks": [Passages()], "recursion_limit": 2000}
    given: Any = {"episode": generate(7011, None, 3).model_dump(mode="json")}
    await builder.compile().ainvoke(given, config, context=context)
    for passage in asked_for:
        told = summarise_passage.user_text(passage)
        offered = schema_of(summarise_passage, passage)["properties"]["found"]["items"]["properties"]["place"]
        assert all(f" ({each})" in told for each in offered["enum"] if each >= 0), offered
    assert len(asked_for) > 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
async def test_what_agents_are_told_is_so_in_a_hundred_episodes(seed: int) -> None:
    share = 0.2 if seed % 3 == 2 else 0.0
    more = {"window": (10, 2)[seed % 2], "manager_lapses": share, "member_lapses": share}
    team = 1 + seed % 4
    _, wrong = await untrue(generate(seed, GOAL_CATEGORIES[seed % 5], team), **more, allocation=seed % 7 != 6)
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"
