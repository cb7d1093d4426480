"""The gate: people first, nothing lost, in any mix of lanes, loops and cancellations."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest
from langchain_core.runnables import RunnableLambda

from mneme.models.asking import gate as gate_module
from mneme.models.asking.gate import Gate, Lane, asking_for

Work = Callable[[], Awaitable[str]]


class Endpoint:
    """A place that notes who runs in it, and how many at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.begun: list[str] = []
        self.stopping: list[str] = []
        self.ended: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def work(self, name: str, until: asyncio.Event | None = None) -> Work:
        """Return work that lasts until an event, else for the endpoint's seconds."""

        async def run() -> str:
            with self._lock:
                self._now += 1
                self.most = max(self.most, self._now)
                self.begun.append(name)
            try:
                await (asyncio.sleep(self.seconds) if until is None else until.wait())
            finally:
                with self._lock:
                    self._now -= 1
            self.ended.append(name)
            return name

        return run

    def stubborn(self, name: str, until: asyncio.Event, stop: asyncio.Event) -> Work:
        """Return work that, asked to stop, goes on until a second event."""
        work = self.work(name, until)

        async def run() -> str:
            try:
                return await work()
            except asyncio.CancelledError:
                self.stopping.append(name)
                await stop.wait()
                raise

        return run


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop go round until something holds."""
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    pytest.fail("it never came")


async def start(gate: Gate, lane: Lane, work: Work, owner: str = "") -> "asyncio.Task[str]":
    """Send a call to the gate and let it take its place in the line or begin."""
    task = asyncio.create_task(gate.run(lane, work, owner))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("width", [1, 4])
async def test_never_admits_more_than_its_width(width: int) -> None:
    gate, endpoint = Gate(width), Endpoint(0.001)
    lanes: list[Lane] = ["user", "background"]
    results = await asyncio.gather(*(gate.run(lanes[n % 2], endpoint.work(str(n))) for n in range(40)))
    assert results == [str(n) for n in range(40)]
    assert endpoint.most == width


async def test_a_queued_user_call_overtakes_all_queued_background_calls() -> None:
    gate, endpoint, end = Gate(1, patience=0), Endpoint(), asyncio.Event()
    tasks = [await start(gate, "background", endpoint.work(f"b{n}", end)) for n in range(20)]
    tasks += [await start(gate, "user", endpoint.work(f"u{n}", end)) for n in range(3)]
    end.set()
    await asyncio.gather(*tasks)
    assert endpoint.ended[:4] == ["b0", "u0", "u1", "u2"]
    assert endpoint.ended[4:] == [f"b{n}" for n in range(1, 20)]


async def test_a_user_call_preempts_the_background_call_in_its_place() -> None:
    gate, endpoint, end = Gate(1), Endpoint(), asyncio.Event()
    slow = await start(gate, "background", endpoint.work("slow", end))
    await gate.run("user", endpoint.work("user"))
    end.set()
    assert await slow == "slow"
    assert endpoint.begun == ["slow", "user", "slow"]
    assert endpoint.ended == ["user", "slow"]


async def test_the_background_call_that_lost_least_is_preempted_and_only_one_for_each_user() -> None:
    gate, endpoint, end = Gate(3), Endpoint(), asyncio.Event()
    names = ("old", "middle", "young")
    tasks = [await start(gate, "background", endpoint.work(name, end)) for name in names]
    await gate.run("user", endpoint.work("user"))
    end.set()
    await asyncio.gather(*tasks)
    assert endpoint.begun == ["old", "middle", "young", "user", "young"]


async def test_two_users_preempt_two_calls_even_while_the_first_is_still_stopping() -> None:
    gate, endpoint, end, stop = Gate(2), Endpoint(), asyncio.Event(), asyncio.Event()
    work = [endpoint.stubborn(f"b{n}", end, stop) for n in range(2)]
    tasks = [await start(gate, "background", each) for each in work]
    users = [await start(gate, "user", endpoint.work(f"u{n}")) for n in range(2)]
    await until(lambda: len(endpoint.stopping) == 2)
    stop.set()
    await asyncio.gather(*users)
    end.set()
    await asyncio.gather(*tasks)
    assert sorted(endpoint.begun[:4]) == ["b0", "b1", "u0", "u1"]


async def test_a_user_who_goes_away_leaves_the_stopped_place_to_the_next() -> None:
    gate, endpoint, end, stop = Gate(2), Endpoint(), asyncio.Event(), asyncio.Event()
    work = [endpoint.stubborn(f"b{n}", end, stop) for n in range(2)]
    tasks = [await start(gate, "background", each) for each in work]
    gone = await start(gate, "user", endpoint.work("gone"))
    gone.cancel()
    user = await start(gate, "user", endpoint.work("user"))
    assert endpoint.stopping == ["b1"]
    stop.set()
    assert await user == "user"
    end.set()
    await asyncio.gather(*tasks)
    assert sorted(endpoint.begun) == ["b0", "b1", "b1", "user"]


async def test_background_work_that_has_waited_long_enough_is_not_preempted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr(gate_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    gate, endpoint, end = Gate(1, patience=30), Endpoint(), asyncio.Event()
    slow = await start(gate, "background", endpoint.work("slow", end))
    for clock[0] in (110.0, 129.0):
        await gate.run("user", endpoint.work("user"))
        await until(lambda: endpoint.begun[-1] == "slow")
    clock[0] = 130.0
    user = await start(gate, "user", endpoint.work("user"))
    end.set()
    assert [await each for each in (slow, user)] == ["slow", "user"]
    assert endpoint.ended == ["user", "user", "slow", "user"]


async def test_a_stalled_background_call_makes_a_user_wait_once_and_then_goes_behind_the_others() -> None:
    gate, endpoint, never = Gate(1, patience=0, longest=0.05), Endpoint(), asyncio.Event()
    stalled = await start(gate, "background", endpoint.work("stalled", never), "ann")
    other = await start(gate, "background", endpoint.work("other"), "bob")
    first = await start(gate, "user", endpoint.work("first"))
    assert endpoint.begun == ["stalled"], "it is spared"
    await asyncio.gather(first, other)
    await until(lambda: endpoint.begun == ["stalled", "first", "other", "stalled"])
    stalled.cancel()


async def test_a_cancelled_waiter_leaves_the_line_and_a_cancelled_runner_its_place() -> None:
    gate, endpoint = Gate(1), Endpoint()
    running = await start(gate, "user", endpoint.work("running", asyncio.Event()))
    waiting = [await start(gate, "user", endpoint.work(f"w{n}")) for n in range(3)]
    waiting[0].cancel()
    await asyncio.sleep(0)
    assert gate.waiting("user") == 2
    running.cancel()
    assert await asyncio.gather(*waiting[1:]) == ["w1", "w2"]
    assert endpoint.ended == ["w1", "w2"]


async def test_a_waiter_cancelled_in_the_moment_of_its_turn_gives_the_place_back() -> None:
    gate, endpoint = Gate(1), Endpoint()
    release = asyncio.Event()

    async def held() -> str:
        await release.wait()
        return "held"

    first = await start(gate, "user", held)
    second = await start(gate, "user", endpoint.work("second"))
    third = await start(gate, "user", endpoint.work("third"))
    release.set()
    first.add_done_callback(lambda _: second.cancel())
    assert await third == "third"
    assert second.cancelled()


async def test_a_cancelled_background_call_is_not_taken_for_a_preempted_one() -> None:
    gate, endpoint, never = Gate(1), Endpoint(), asyncio.Event()
    slow = await start(gate, "background", endpoint.work("slow", never))
    user = asyncio.create_task(gate.run("user", endpoint.work("user", never)))
    await asyncio.sleep(0)  # not until it is preempted: both come at once
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    never.set()
    assert await user == "user"
    assert await gate.run("background", endpoint.work("next")) == "next"
    assert endpoint.begun.count("slow") == 1


async def test_a_time_limit_around_a_preempted_call_still_ends_it() -> None:
    gate, endpoint, limit = Gate(1), Endpoint(), asyncio.timeout(None)

    async def limited() -> str:
        async with limit:
            return await gate.run("background", endpoint.work("slow", asyncio.Event()))

    slow = asyncio.create_task(limited())
    await until(lambda: endpoint.begun == ["slow"])
    await gate.run("user", endpoint.work("user"))
    await until(lambda: endpoint.begun == ["slow", "user", "slow"])
    limit.reschedule(0)
    with pytest.raises(TimeoutError):
        await slow
    assert await gate.run("user", endpoint.work("next")) == "next"


async def test_failures_pass_through_and_free_the_place() -> None:
    gate = Gate(1)

    async def fail() -> str:
        raise KeyError("x")

    for lane in ("user", "background"):
        with pytest.raises(KeyError):
            await gate.run(lane, fail)
    assert await gate.run("user", Endpoint().work("after")) == "after"


def test_one_gate_serves_several_threads_with_loops_of_their_own() -> None:
    gate, endpoint = Gate(2), Endpoint(0.002)
    results: list[list[str]] = []

    async def many(thread: int) -> list[str]:
        lanes: list[Lane] = ["user", "background"]
        calls = (gate.run(lanes[n % 2], endpoint.work(f"{thread}-{n}")) for n in range(30))
        return list(await asyncio.gather(*calls))

    threads = [threading.Thread(target=lambda t=t: results.append(asyncio.run(many(t)))) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, results)) == [30] * 4
    assert endpoint.most == 2
    assert sorted(set(endpoint.ended)) == sorted(endpoint.ended)
    assert len(endpoint.ended) == 120


def test_a_user_in_one_thread_preempts_background_work_in_another() -> None:
    gate, endpoint = Gate(1), Endpoint()
    running = threading.Event()

    async def slow() -> str:
        """Last for ever the first time."""
        again = running.is_set()
        running.set()
        await endpoint.work("slow", None if again else asyncio.Event())()
        return "slow"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(gate.run("background", slow))))
    thread.start()
    running.wait()
    asyncio.run(gate.run("user", endpoint.work("user")))
    thread.join()
    assert results == ["slow"]
    assert endpoint.ended == ["user", "slow"]


def test_a_loop_that_ended_with_calls_in_line_blocks_nobody() -> None:
    gate, endpoint = Gate(1), Endpoint()

    async def abandon() -> None:
        never = asyncio.Event()
        for lane in ("user", "background"):
            await start(gate, lane, endpoint.work("lost", never))

    asyncio.run(abandon())
    assert asyncio.run(gate.run("user", endpoint.work("found"))) == "found"


@pytest.mark.parametrize("lane", ["user", "background"])
async def test_each_owner_s_calls_go_in_turn(lane: Lane) -> None:
    gate, endpoint, end = Gate(1), Endpoint(), asyncio.Event()
    tasks = [await start(gate, lane, endpoint.work(f"bob{n}", end), "bob") for n in range(5)]
    tasks += [await start(gate, lane, endpoint.work(f"carol{n}", end), "carol") for n in range(2)]
    tasks.append(await start(gate, lane, endpoint.work("dan", end), "dan"))
    end.set()
    await asyncio.gather(*tasks)
    assert endpoint.ended == ["bob0", "carol0", "dan", "bob1", "carol1", "bob2", "bob3", "bob4"]


@pytest.mark.parametrize("known_by", ["run", "request"])
async def test_the_owner_is_whose_run_or_request_it_is(known_by: str) -> None:
    gate, endpoint, end = Gate(1), Endpoint(), asyncio.Event()

    async def ask(name: str) -> str:
        if known_by == "request":
            asking_for.set(name[:-1])
        return await gate.run("user", endpoint.work(name, end))

    def begin(name: str) -> "asyncio.Task[str]":
        owner = name[:-1] if known_by == "run" else ""
        return asyncio.create_task(RunnableLambda(ask).ainvoke(name, {"metadata": {"owner": owner}}))

    tasks = [begin(name) for name in ("bob1", "bob2", "bob3", "carol1")]
    await until(lambda: gate.waiting("user") == 3)
    end.set()
    await asyncio.gather(*tasks)
    assert endpoint.ended == ["bob1", "carol1", "bob2", "bob3"]


async def test_a_person_still_comes_before_everybody_s_background() -> None:
    gate, endpoint, end = Gate(1), Endpoint(), asyncio.Event()
    tasks = [await start(gate, "background", endpoint.work(who, end), who) for who in ("bob", "carol")]
    await gate.run("user", endpoint.work("dan"), "dan")
    assert endpoint.ended == ["dan"]
    end.set()
    await asyncio.gather(*tasks)
    assert endpoint.ended == ["dan", "bob", "carol"]
