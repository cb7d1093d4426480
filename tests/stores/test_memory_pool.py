"""Pools of shared memories and the rubrics that score them: each pair once, nothing lost, versions kept."""

import asyncio
import json
from typing import Any

import pytest

from mneme.api.pools import Pools
from mneme.core.errors import BadInput, NotFound
from mneme.library.agents.rubric import Rubric, load_rubric, read_rubric
from mneme.nodes.sharing.pools import rubrics_of
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons, keep
from mneme.stores.pools.memory_pool import MemoryPool, Pair, read_lines

CHANGE = Change(reason="a test", actor="test")


def pair(number: int, **more: Any) -> Pair:
    told = {"prompt": f"Sing of stone {number}.", "answer": f"Stone {number} is grey, and lies in the way."}
    return Pair(**{**told, "agent": "limerick", "domain": "literary_creation", "score": 80, **more})


def pool_in(ledger: Ledger, name: str = "literary_creation", team: str = "poets") -> MemoryPool:
    return MemoryPool(ledger, team, name)


async def test_a_pair_that_eight_agents_store_at_once_is_there_once_and_new_to_one(ledger: Ledger) -> None:
    pool = pool_in(ledger)
    agents = [pair(1, agent=f"agent{number}", score=70 + number) for number in range(8)]
    are_new = await asyncio.gather(*(keep(pool, [each], change=CHANGE) for each in agents))
    assert sorted(are_new) == [[False]] * 7 + [[True]]
    assert await pool.count() == 1
    assert await RetrieverLessons(pool).count_on("waiting") == 1


async def test_many_writers_lose_no_pair(ledger: Ledger) -> None:
    pool = pool_in(ledger)
    batches = [[pair(number) for number in range(first, first + 6)] for first in range(0, 24, 3)]
    told = await asyncio.gather(*(keep(pool, each, change=CHANGE) for each in batches))
    assert sum(sum(each) for each in told) == 27, "overlapping batches count each pair once"
    assert {each.pair.prompt async for each in pool.pairs()} == {pair(n).prompt for n in range(27)}
    assert await RetrieverLessons(pool).count_on("waiting") == 27


async def test_what_is_stored_again_after_a_kill_opens_the_lesson_that_was_missing(ledger: Ledger) -> None:
    pool = pool_in(ledger)
    assert await pool.add(pair(1), change=CHANGE)  # killed here, before the lesson was opened
    assert await RetrieverLessons(pool).count_on("waiting") == 0
    assert await keep(pool, [pair(1)], change=CHANGE) == [False]
    assert await RetrieverLessons(pool).count_on("waiting") == 1


async def test_a_removed_pair_is_found_no_more_and_does_not_come_back(ledger: Ledger) -> None:
    pool, shared = pool_in(ledger), Pools(ledger, "poets")
    await keep(pool, [pair(1), pair(2)], change=CHANGE)
    key = await shared.remove("literary_creation", pair(1).key[:10], "it is wrong")
    assert [each.pair for each in await pool.retrieve("stone 1", 5)] == [pair(2)]
    assert await keep(pool, [pair(1)], change=CHANGE) == [False]
    assert await pool.count() == 1
    history = await ledger.history(pool.namespace, key)
    assert [each.change.reason for each in history] == ["a test", "it is wrong"]


async def test_a_forgotten_pair_leaves_no_word_behind(edge_ledger: Ledger) -> None:
    pool, shared = pool_in(edge_ledger), Pools(edge_ledger, "poets")
    await keep(pool, [pair(1), pair(2)], change=CHANGE)
    await shared.forget("literary_creation", pair(1).key, "asked for")
    left = [line async for line in edge_ledger.export()]
    assert not any("stone 1" in line.lower() for line in left)
    assert any("stone 2" in line.lower() for line in left)


async def test_an_export_comes_back_as_it_was(ledger: Ledger) -> None:
    shared, other = Pools(ledger, "poets"), Pools(ledger, "others")
    pairs = [pair(1, leading=["user: hello", "assistant: hm"], retriever=3, rubric=2), pair(2, prompt="")]
    await keep(pool_in(ledger), pairs, change=CHANGE)
    lines = [
        *await shared.export_lines("literary_creation", 0, 1),
        *await shared.export_lines("literary_creation", 1),
    ]
    assert (await other.import_lines("literary_creation", lines)).added == 2
    assert [each.pair for each in await other.pairs("literary_creation")] == pairs
    again = await other.import_lines("literary_creation", lines)
    assert (again.added, again.known) == (0, 2)


async def test_broken_lines_are_told_by_number_and_the_rest_goes_in(ledger: Ledger) -> None:
    good = [pair(number).model_dump_json() for number in range(3)]
    long = json.dumps(pair(4).model_dump() | {"answer": "x" * 50_000})
    lines = [good[0], "{not json", good[1], long, "", '{"prompt": "no answer"}', good[2]]
    told = await Pools(ledger, "poets").import_lines("literary_creation", lines, first=11)
    assert told.added == 3
    assert [line.partition(":")[0] for line in told.broken] == ["line 12", "line 14", "line 16"]
    assert "20000 characters" in told.broken[1] and "answer" in told.broken[2]
    assert await pool_in(ledger).count() == 3


def test_lines_that_hold_no_pair_at_all_are_all_told() -> None:
    pairs, broken = read_lines(["[]", "7", '"text"'])
    assert not pairs and len(broken) == 3


async def test_pools_and_teams_are_apart(ledger: Ledger) -> None:
    await keep(pool_in(ledger), [pair(1)], change=CHANGE)
    assert await pool_in(ledger, "single_pool").retrieve("stone 1", 3) == []
    assert await pool_in(ledger, team="others").retrieve("stone 1", 3) == []
    assert [each.pool for each in await Pools(ledger, "poets").list()] == ["literary_creation"]
    assert await Pools(ledger, "others").list() == []


async def test_the_turns_that_led_up_to_a_question_make_it_another_memory(ledger: Ledger) -> None:
    pool, turns = pool_in(ledger), ["user: I collect agates.", "assistant: Lovely."]
    assert await keep(pool, [pair(1), pair(1, leading=turns)], change=CHANGE) == [True, True]
    found = await pool.retrieve("agates lovely collect", 1)
    assert found[0].pair.leading == turns


async def test_a_pair_is_named_by_the_beginning_of_its_key(ledger: Ledger) -> None:
    pool = pool_in(ledger)
    await keep(pool, [pair(number) for number in range(20)], change=CHANGE)
    assert (await pool.get(pair(3).key[:12])).pair == pair(3)
    with pytest.raises(NotFound, match="holds no pair zz"):
        await pool.get("zz")
    keys = [pair(number).key[0] for number in range(20)]
    twice = next(each for each in keys if keys.count(each) > 1)
    with pytest.raises(BadInput, match="pairs begin with"):
        await pool.get(twice)


async def test_rubrics_are_frozen_as_versions(ledger: Ledger) -> None:
    rubrics = rubrics_of(ledger, "poets")
    assert (await rubrics.latest("literary_creation")).version == 0
    own = rubric("literary_creation", 40, 60)
    frozen = await rubrics.freeze(own.name, own, change=CHANGE, once="design 1")
    again = await rubrics.freeze(own.name, own, change=CHANGE, once="design 1")
    assert again == frozen, "a replay adds nothing"
    second = await rubrics.freeze(own.name, rubric(own.name, 30, 70), change=CHANGE, once="design 2")
    assert (frozen.version, second.version) == (1, 2)
    assert await rubrics.latest("literary_creation") == second
    assert await rubrics.get("literary_creation", 1) == frozen
    assert (await rubrics.get("literary_creation", 0)).rubric == load_rubric("literary_creation")
    with pytest.raises(NotFound, match="no version 9"):
        await rubrics.get("literary_creation", 9)
    with pytest.raises(BadInput, match="has no rubric"):
        await rubrics.latest("gardening")
    assert (await rubrics_of(ledger, "others").latest("literary_creation")).version == 0


def rubric(name: str, *points: int) -> Rubric:
    criteria = [{"name": f"c{at}", "points": each, "looks_at": "…"} for at, each in enumerate(points)]
    return Rubric.model_validate({"name": name, "title": name, "criteria": criteria})


def test_a_rubric_that_does_not_sum_to_100_is_refused_with_its_sum() -> None:
    criteria = "- {name: a, points: 60, looks_at: x}\n- {name: b, points: 30, looks_at: y}"
    text = f"name: mine\ntitle: Mine\ncriteria:\n{criteria}"
    with pytest.raises(BadInput, match="sum to 90, not to 100"):
        read_rubric(text)


def test_a_turn_that_is_too_long_is_named_by_its_line() -> None:
    lines = [pair(1, leading=["user: hi"]).model_dump_json()]
    lines.append(json.dumps(pair(2).model_dump() | {"leading": ["x" * 500_000]}))
    pairs, broken = read_lines(lines)
    assert pairs == [pair(1, leading=["user: hi"])]
    assert broken[0].startswith("line 2: leading.0:") and "20000 characters" in broken[0]
