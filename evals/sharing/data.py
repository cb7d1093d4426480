"""Questions with standard answers for nine agents, split as in the paper's A.3, with nothing in two splits.

20 % of each agent's items are archived in the pool before the run, of 40 % only the questions are asked to
grow it, 40 % are the test. Which item goes where is drawn by seed. Items whose questions or whose answers are
nearly the same, whichever agents they belong to, go into one split together: an answer that is already in the
pool would be no test.
"""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator
from rapidfuzz import fuzz, process
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mneme.core.errors import BadInput
from mneme.evals.options import RunOptions
from mneme.evals.report import read_lines
from mneme.evals.sharing.scores import tokens
from mneme.library import PAIRS
from mneme.library.agents.agent import AGENTS, load_agent
from mneme.models.retriever.retriever import Matrix

Part = Literal["archived", "new", "test"]
SPLIT_PARTS: tuple[Part, ...] = get_args(Part)
DUPLICATE_LIKENESS = 80.0
"""Minimum similarity (0 to 100) of two texts' sorted words at which they count as one."""
MIN_ITEMS = 5
"""Minimum items of an agent: with fewer, a split has nothing to archive."""
FORMAT = 'Each line: {"id": …, "question": …, "answer": …}, and "agent" where one file holds several agents.'


class SplitOptions(RunOptions):
    """Items, and the seeds of their splits."""

    data: Path | None = Field(None, description="A folder of AGENT.jsonl, or one file; default: the shipped.")
    seeds: list[int] = Field([1, 2, 3], min_length=1, description="Each draws another split.")


class Item(BaseModel):
    """A question to one agent, and its standard answer."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    agent: str

    @field_validator("agent")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in AGENTS:
            raise ValueError(f'there is no agent "{value}"; agents are {", ".join(AGENTS)}')
        return value

    @property
    def domain(self) -> str:
        """The agent's domain."""
        return load_agent(self.agent).domain


Split = dict[Part, list[Item]]
"""The items of one run: archived before it, asked to grow the pool, kept for the test."""


def read_items(data: Path | None) -> list[Item]:
    """Read the shipped sets, a folder of `<agent>.jsonl`, or one file whose lines name their agent.

    Raises BadInput, which names file and line, for a broken line, an unknown agent, an id given twice and an
    agent with too few items.
    """
    items = [
        item
        for path in _files(data or PAIRS)
        for item in read_lines(path, Item, FORMAT, {"agent": path.stem} if path.stem in AGENTS else None)
    ]
    counted = Counter(item.agent for item in items)
    if few := [f"{agent} has {n}" for agent, n in counted.items() if n < MIN_ITEMS]:
        raise BadInput(f"Too few items to split: {', '.join(few)}.", f"Give each agent at least {MIN_ITEMS}.")
    if twice := [id_ for id_, n in Counter(item.id for item in items).items() if n > 1]:
        raise BadInput(f'The id "{twice[0]}" is given twice.', "Give each item an id of its own.")
    return items


def _files(data: Path) -> list[Path]:
    if data.is_file():
        return [data]
    if files := sorted(path for path in data.glob("*.jsonl") if path.stem in AGENTS):
        return files
    raise BadInput(f"{data} is neither a file nor a folder of agents' items.", f"AGENT.jsonl; {FORMAT}")


def near_duplicates(items: Sequence[Item]) -> list[list[Item]]:
    """Return the items in groups: those of one group are nearly the same, directly or by others between."""
    found = likenesses(items, items, DUPLICATE_LIKENESS) >= DUPLICATE_LIKENESS
    count, labels = connected_components(coo_array(found.astype(np.int8)), directed=False)
    groups: list[list[Item]] = [[] for _ in range(count)]
    for item, label in zip(items, labels, strict=True):
        groups[label].append(item)
    return groups


def likenesses(rows: Sequence[Item], columns: Sequence[Item], least: float = 0.0) -> Matrix:
    """Return the similarity of each two items, 0 to 100: of their questions or answers, the greater.

    A similarity below the minimum counts as 0, which is faster.
    """
    both = [
        process.cdist(
            [" ".join(tokens(getattr(item, side))) for item in rows],
            [" ".join(tokens(getattr(item, side))) for item in columns],
            scorer=fuzz.token_sort_ratio,  # word order is no difference between two items
            score_cutoff=least,
            dtype=np.float32,
        )
        for side in ("question", "answer")
    ]
    greater: Matrix = np.maximum(*both)
    return greater


def split(items: Sequence[Item], seed: int) -> Split:
    """Split each agent's items 20/40/40 by seed; a group of near-duplicates stays together.

    Raises BadInput where near-duplicates leave an agent without items for a part.
    """
    draw = random.Random(seed)  # noqa: S311  (a sample, no secret)
    room: dict[str, dict[Part, int]] = {}
    for agent, n in Counter(item.agent for item in items).items():
        archived, new = max(1, round(0.2 * n)), round(0.4 * n)  # every agent has something in the pool
        room[agent] = {"archived": archived, "new": new, "test": n - archived - new}
    groups = near_duplicates(items)
    draw.shuffle(groups)
    made: Split = {part: [] for part in SPLIT_PARTS}
    for group in sorted(groups, key=len, reverse=True):  # large groups first: they fit while there is room
        part = _part_for(group, room, draw)
        made[part].extend(group)
        for item in group:
            room[item.agent][part] -= 1
    for part in SPLIT_PARTS:
        if lacking := room.keys() - {item.agent for item in made[part]}:
            raise BadInput(
                f"Of {', '.join(sorted(lacking))} no item is left to be {part}: too many are alike.",
                "Give more different items.",
            )
    return made


def _part_for(group: Sequence[Item], room: dict[str, dict[Part, int]], draw: random.Random) -> Part:
    """Draw a part in proportion to its room; a group that fits nowhere goes where most room is."""
    needed = Counter(item.agent for item in group)
    left = {part: min(room[agent][part] - n for agent, n in needed.items()) for part in SPLIT_PARTS}
    weights = [max(0, left[part] + 1) for part in SPLIT_PARTS]
    if not any(weights):
        return max(SPLIT_PARTS, key=lambda part: left[part])
    return draw.choices(SPLIT_PARTS, weights)[0]
