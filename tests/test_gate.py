"""The gate: people first, nothing lost, in any mix of lanes, loops and cancellations."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from models.gate import Gate, Lane

Work = Callable[[], Awaitable[str]]


class Endpoint:
    """A place that notes who runs in it, and how many at once."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds = seconds
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def work(self, name: str, seconds: float | None = None) -> Work:
        async def run() -> str:
            with self._lock:
                self._now += 1
                self.most = max(self.most, self._now)
                self.begun.append(name)
            try:
                await asyncio.sleep(self.seconds if seconds is None else seconds)
            finally:
                with self._lock:
                    self._now -= 1
            self.ended.append(name)
            return name

        return run


async def start(gate: Gate, lane: Lane, work: Work) -> "asyncio.Task[str]":
    """Send a call to the gate and let it take its place in the line."""
    task = asyncio.create_task(gate.run(lane, work))
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("width", [1, 4])
async def test_never_admits_more_than_its_width(width: int) -> None:
    gate, endpoint = Gate(width), Endpoint()
    lanes: list[Lane] = ["user", "background"]
    results = await asyncio.gather(*(gate.run(lanes[n % 2], endpoint.work(str(n))) for n in range(40)))
    assert results == [str(n) for n in range(40)]
    assert endpoint.most == width


async def test_a_queued_user_call_overtakes_all_queued_background_calls() -> None:
    gate, endpoint = Gate(1, patience=0), Endpoint()
    tasks = [await start(gate, "background", endpoint.work(f"b{n}")) for n in range(20)]
    tasks += [await start(gate, "user", endpoint.work(f"u{n}")) for n in range(3)]
    await asyncio.gather(*tasks)
    assert endpoint.ended[:4] == ["b0", "u0", "u1", "u2"]
    assert endpoint.ended[4:] == [f"b{n}" for n in range(1, 20)]


async def test_a_user_call_preempts_the_background_call_in_its_place() -> None:
    gate, endpoint = Gate(1), Endpoint()
    slow = await start(gate, "background", endpoint.work("slow", 0.3))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await gate.run("user", endpoint.work("user", 0))
    waited = time.monotonic() - began
    assert waited < 0.1
    assert await slow == "slow"
    assert endpoint.begun == ["slow", "user", "slow"]
    assert endpoint.ended == ["user", "slow"]


async def test_the_background_call_that_lost_least_is_preempted_and_only_one_for_each_user() -> None:
    gate, endpoint = Gate(3), Endpoint()
    tasks = []
    for name in ("old", "middle", "young"):
        tasks.append(await start(gate, "background", endpoint.work(name, 0.2)))
        await asyncio.sleep(0.02)
    await gate.run("user", endpoint.work("user", 0))
    await asyncio.gather(*tasks)
    assert endpoint.begun == ["old", "middle", "young", "user", "young"]


def stubborn(endpoint: Endpoint, name: str) -> Work:
    """Return work that takes a while to stop when it is asked to."""

    async def run() -> str:
        endpoint.begun.append(name)
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            raise
        return name

    return run


async def test_two_users_preempt_two_calls_even_while_the_first_is_still_stopping() -> None:
    gate, endpoint = Gate(2), Endpoint()
    tasks = [await start(gate, "background", stubborn(endpoint, f"b{n}")) for n in range(2)]
    await asyncio.sleep(0.02)
    began = time.monotonic()
    await asyncio.gather(*(gate.run("user", endpoint.work(f"u{n}", 0.1)) for n in range(2)))
    assert time.monotonic() - began < 0.25
    await asyncio.gather(*tasks)
    assert sorted(endpoint.begun[:4]) == ["b0", "b1", "u0", "u1"]


async def test_a_user_who_goes_away_leaves_the_stopped_place_to_the_next() -> None:
    gate, endpoint = Gate(2), Endpoint()
    tasks = [await start(gate, "background", stubborn(endpoint, f"b{n}")) for n in range(2)]
    await asyncio.sleep(0.02)
    gone = await start(gate, "user", endpoint.work("gone"))
    gone.cancel()
    await asyncio.sleep(0)
    await gate.run("user", endpoint.work("user"))
    await asyncio.gather(*tasks)
    assert sorted(endpoint.begun) == ["b0", "b1", "b1", "user"]


async def test_background_work_that_has_waited_long_enough_is_not_preempted_again() -> None:
    gate, endpoint = Gate(1, patience=0.2), Endpoint()
    slow = await start(gate, "background", endpoint.work("slow", 0.1))
    for _ in range(60):
        await gate.run("user", endpoint.work("user", 0.002))
        await asyncio.sleep(0.002)
        if slow.done():
            break
    assert slow.done()
    assert 2 <= endpoint.begun.count("slow") < 60


async def test_a_cancelled_waiter_leaves_the_line_and_a_cancelled_runner_its_place() -> None:
    gate, endpoint = Gate(1), Endpoint()
    running = await start(gate, "user", endpoint.work("running", 10))
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
    assert await asyncio.wait_for(third, 1) == "third"
    assert second.cancelled()


async def test_a_cancelled_background_call_is_not_taken_for_a_preempted_one() -> None:
    gate, endpoint = Gate(1), Endpoint()
    slow = await start(gate, "background", endpoint.work("slow", 10))
    user = await start(gate, "user", endpoint.work("user"))
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await user == "user"
    assert await asyncio.wait_for(gate.run("background", endpoint.work("next")), 1) == "next"
    assert endpoint.begun.count("slow") == 1


async def test_a_time_limit_around_a_preempted_call_still_ends_it() -> None:
    gate, endpoint = Gate(1), Endpoint()

    async def limited() -> str:
        async with asyncio.timeout(0.1):
            return await gate.run("background", endpoint.work("slow", 10))

    slow = asyncio.create_task(limited())
    await asyncio.sleep(0.02)
    await gate.run("user", endpoint.work("user"))
    with pytest.raises(TimeoutError):
        await slow
    assert await asyncio.wait_for(gate.run("user", endpoint.work("next")), 1) == "next"


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
        thread.join(20)
    assert sorted(map(len, results)) == [30] * 4
    assert endpoint.most == 2
    assert sorted(set(endpoint.ended)) == sorted(endpoint.ended)
    assert len(endpoint.ended) == 120


def test_a_user_in_one_thread_preempts_background_work_in_another() -> None:
    gate, endpoint = Gate(1), Endpoint()
    running = threading.Event()

    async def slow() -> str:
        running.set()
        return await endpoint.work("slow", 0.3)()

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(gate.run("background", slow))))
    thread.start()
    running.wait()
    began = time.monotonic()
    asyncio.run(gate.run("user", endpoint.work("user", 0)))
    assert time.monotonic() - began < 0.15
    thread.join()
    assert results == ["slow"]


def test_a_loop_that_ended_with_calls_in_line_blocks_nobody() -> None:
    gate, endpoint = Gate(1), Endpoint()

    async def abandon() -> None:
        for lane in ("user", "background"):
            await start(gate, lane, endpoint.work("lost", 10))

    asyncio.run(abandon())
    assert asyncio.run(asyncio.wait_for(gate.run("user", endpoint.work("found")), 1)) == "found"
