"""A memory of your own for `mneme compare`: it keeps the lines in which a rare word stands, newest first.

Beside others: `cd examples && mneme compare --quick --memory compare_memory:RareWords --memory raw_events`.
"""

import re
from collections import Counter
from collections.abc import Sequence

from mneme.evals.compare.memory import Event, Memory, Outcome, Place


class RareWords(Memory):
    """Show the lines that share the rarest words with a situation."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.lines = list[str]()
        self.counts = Counter[str]()

    async def observe(self, event: Event) -> None:
        self.lines.insert(0, event.line)
        self.counts.update(words(event.line))

    async def end_of_task(self, outcome: Outcome) -> None:
        if outcome.lesson:
            await self.observe(Event(outcome.day, "lesson", outcome.lesson))

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        asked = words(situation)

        def rarity(line: str) -> float:
            return sum(1 / self.counts[word] for word in words(line) & asked)

        return sorted(self.lines, key=rarity, reverse=True)  # stable: of equals the newest stays first


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
