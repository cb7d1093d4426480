"""The evaluation of growth: three ways to keep the same chat, measured and compared."""

from pathlib import Path

from mneme.evals.reliability.growth import ALL_KEPT, ARMS, LAST_KEPT, WHOLE, Options, exponent, run


async def test_ways_to_keep_a_chat_are_compared(tmp_path: Path) -> None:
    made = await run(Options(turns=[2, 4], kept=1, out=tmp_path))
    assert [*made.summary] == [*ARMS]
    sizes = {arm: made.summary[arm]["bytes"]["4"] for arm in ARMS}
    assert sizes[LAST_KEPT] < sizes[ALL_KEPT] < 1.1 * sizes[WHOLE]
    again = await run(Options(turns=[2, 4], kept=1, out=tmp_path))
    assert again.rows == made.rows, "a finished run is not done again"


def test_the_exponent_of_a_line_is_one() -> None:
    assert round(exponent({"10": 10, "20": 20, "40": 40}), 3) == 1
    assert round(exponent({"10": 1, "20": 4, "40": 16}), 3) == 2
