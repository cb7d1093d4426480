"""Memory Sharing's pool (§3.1): prompt-answer pairs of many agents, which all of them read and write.

A pair's key is made of its content, so that the same pair is in a pool once, however many agents store
it at the same moment. A pair may hold the turns that led up to its question; the paper names
the lack of them as a limitation.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from operator import mul
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput, NotFound
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.query import Mode
from mneme.stores.ledger.records import Change, Namespace, Version, team_namespace
from mneme.stores.shelf import RecordKind, Shelf
from mneme.stores.write_gate import PAIR_GATE, SAME_ANSWER, SAME_QUESTION, may_be_reworded, near

MAX_PAIR_CHARS = PAIR_GATE.max_chars
"""Maximum characters of a prompt or an answer: an example must fit into another agent's prompt."""
MAX_TURNS = 20
"""Maximum turns before a question."""
MAX_HIDDEN_SCORE = 50
"""Maximum score at which a pair with more thumbs down than up is hidden from agents."""
DUPLICATE_CANDIDATES = 10
"""Number of pairs that are checked for a near-duplicate: those that share the most words with the new one."""
PAIRS_SHELF = "pairs"
PAIRS_PER_READ = 500


def asked(question: str, leading: Sequence[str]) -> str:
    """Return the text to search a question by, latest turn first: embedders may read only the beginning."""
    return "\n".join([question, *reversed(leading)])


class Pair(BaseModel, frozen=True, extra="forbid"):
    """A prompt-answer pair: one memory, as it is shown to other agents."""

    prompt: str = Field(
        "", max_length=MAX_PAIR_CHARS, description="The question; the first pairs may lack one."
    )
    own_question: str = Field(
        "",
        max_length=MAX_PAIR_CHARS,
        description="The question alone, where `prompt` is a whole prompt with examples.",
    )
    answer: str = Field(min_length=1, max_length=MAX_PAIR_CHARS)
    leading: list[Annotated[str, Field(max_length=MAX_PAIR_CHARS)]] = Field(
        [],
        max_length=MAX_TURNS,
        description='Earlier turns, oldest first: "user: …", "assistant: …".',
    )
    agent: str = Field(min_length=1, max_length=100)
    domain: str = Field(min_length=1, max_length=100)
    score: int = Field(ge=0, le=100)
    retriever: int = Field(0, ge=0, description="The retriever version that chose its examples; 0: none yet.")
    rubric: int = Field(0, ge=0, description="The rubric's version that scored it; 0: the shipped one.")
    scoring: Literal["", "criteria", "printed", "hand"] = Field(
        "",
        description="How it was scored: by criteria, by one number as printed, or chosen by hand; empty: "
        "not known.",
    )
    judged: int | None = Field(
        None, ge=0, le=100, description="The scorer's own score, where people's ratings entered `score`."
    )
    ups: int = Field(0, ge=0, description="People's thumbs up.")
    downs: int = Field(0, ge=0, description="People's thumbs down.")

    @property
    def key(self) -> str:
        """Return a checksum of this pair's content, without its author and score."""
        said = json.dumps([self.leading, self.prompt.strip(), self.answer.strip()], ensure_ascii=False)
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    @property
    def asks(self) -> str:
        """Return the question without the examples that precede it in a whole prompt."""
        return self.own_question or self.prompt

    @property
    def is_rated_down(self) -> bool:
        """Return whether people's ratings lowered its score so far that it is no longer an example."""
        return self.downs > self.ups and self.score <= MAX_HIDDEN_SCORE

    def rated(self, up: bool) -> "Pair":
        """Return the pair after a thumb: its score is the mean of the scorer's, and 100 or 0 per thumb."""
        judged = self.score if self.judged is None else self.judged  # the score, before the first thumb
        ups, downs = self.ups + up, self.downs + (not up)
        score = round((judged + 100 * ups) / (1 + ups + downs))
        return self.model_copy(update={"judged": judged, "ups": ups, "downs": downs, "score": score})

    @property
    def text(self) -> str:
        """Return the text for search, earlier turns last: an embedder may read only the beginning."""
        return "\n".join([self.prompt, self.answer, *self.leading]).strip()

    @property
    def asked(self) -> str:
        """Return the text by which its question is searched."""
        return asked(self.asks, self.leading)


class Pooled(BaseModel, frozen=True):
    """A pair in its pool; with its similarity if it was found by a question."""

    key: str
    pair: Pair
    similarity: float | None = None

    @classmethod
    def of(cls, version: Version, similarity: float | None = None) -> "Pooled":
        return cls(key=version.key, pair=Pair.model_validate(version.value), similarity=similarity)


class Added(BaseModel):
    """The result of an import."""

    added: int = 0
    known: int = 0
    broken: list[str] = Field([], description="What is wrong, by line; the other lines were stored.")


PAIR = RecordKind[Pair, Pooled](
    Pooled.of,
    text=lambda pair: pair.text,
    part=lambda _: PAIRS_SHELF,
    missing="The pool holds no pair {key}.",
    hint="See `mneme share pool list`.",
)


class MemoryPool(Shelf[Pair, Pooled]):
    """One pool of a team: of one domain, or the single one of all domains."""

    def __init__(self, ledger: Ledger, team: str, pool: str) -> None:
        self.team, self.pool = team, pool
        self.below: Namespace = team_namespace(team, "pools", pool)
        super().__init__(ledger, (*self.below, "pairs"), PAIR)

    async def add(self, pair: Pair, *, change: Change) -> bool:
        """Store a pair; return whether it is new. A removed pair stays removed."""
        return (await self.add_all([pair], change=change))[0]

    @retry_on_conflict
    async def add_all(self, pairs: Sequence[Pair], *, change: Change, once: str | None = None) -> list[bool]:
        """Store pairs, which are embedded together; return which of them are new.

        Pairs that the same `once` stored before, in a killed run, count as new.
        """
        mark, given = once or uuid4().hex, {each.key: each for each in pairs}
        heads = {head.key: head for head in await self.by_keys([*given])}
        fresh = [key for key in given if key not in heads]
        await self.ledger.write([self.write(key, given[key], change, idempotency_key=mark) for key in fresh])
        new = {*fresh, *(key for key, head in heads.items() if head.idempotency_key == mark)}
        # Of a pair that is given twice the first one counts as new.
        firsts = {each.key: number for number, each in reversed([*enumerate(pairs)])}
        return [each.key in new and firsts[each.key] == number for number, each in enumerate(pairs)]

    async def check_filled(self) -> None:
        """Refuse a pool without pairs. Raises NotFound."""
        if not await self.count():
            raise NotFound(f"The pool {self.pool} holds no pairs.", "See `mneme share pool list`.")

    async def holds(self, key: str) -> bool:
        """Return whether a pair exists and has not been removed."""
        return await self.find(key) is not None

    async def get(self, key: str) -> Pooled:
        """Return a pair by its key or the beginning of it. Raises NotFound, BadInput."""
        if found := await self.find(key):
            return found
        starting = [each async for each in self.pairs() if key and each.key.startswith(key)]
        if not starting:
            raise NotFound(f"The pool {self.pool} holds no pair {key}.", "See `mneme share pool list`.")
        if len(starting) > 1:
            raise BadInput(f"{len(starting)} pairs begin with {key}.", "Give more of it.")
        return starting[0]

    async def first(self, limit: int, agent: str = "", start: int = 0) -> Sequence[Pooled]:
        """Return pairs of all agents or of one, in the order in which they were added."""
        return await self.all(limit, filter={"agent": agent} if agent else None, offset=start)

    async def pairs(self, agent: str = "") -> AsyncIterator[Pooled]:
        """Yield every pair, in the order in which they were added."""
        start = 0
        while found := await self.first(PAIRS_PER_READ, agent, start):
            for each in found:
                yield each
            start += PAIRS_PER_READ

    async def retrieve(
        self, question: str, k: int, *, vector: Sequence[float] | None = None, mode: Mode = "dense"
    ) -> list[Pooled]:
        """Return the k pairs most similar to a question (§3.2), by the vector that a retriever computed."""
        hits = await self.search(question, limit=k, mode=mode, vector=vector)
        return [Pooled.of(hit.version, hit.score) for hit in hits]

    async def candidates(self, pair: Pooled, n: int) -> list[Pooled]:
        """Return the n pairs whose words fit a pair's question best by BM25, itself not among them (§3.2)."""
        # More than n, to order equal scores by key: the index orders them by position, which no seed repeats.
        hits = await self.search(pair.pair.asked, limit=3 * n, mode="bm25")
        ordered = sorted(hits, key=lambda hit: (-round(hit.score, 3), hit.version.key))
        return self.read(hit.version for hit in ordered if hit.version.key != pair.key)[:n]

    async def nearly(self, pair: Pair) -> Pooled | None:
        """Return a pair whose question and answer nearly equal this new one's; else None."""
        if await self.by_keys([pair.key]):
            return None  # it is or was in the pool itself, so it is not new
        # By words, so that the pair is not embedded once more; only possible rewordings are.
        found = await self.retrieve(pair.text, DUPLICATE_CANDIDATES, mode="bm25")
        alike = [each for each in found if each.pair.leading == pair.leading]  # else the question is another
        for each in alike:
            if near(each.pair.asks, pair.asks) and near(each.pair.answer, pair.answer):
                return each
        for each in alike:
            if may_be_reworded(each.pair.answer, pair.answer) and await self._means(each.pair, pair):
                return each
        return None

    async def _means(self, one: Pair, other: Pair) -> bool:
        """Return whether two pairs have the same meaning by their vectors; False without an embedder."""
        texts = one.asks, other.asks, one.answer, other.answer
        if not (vectors := await self.ledger.embedded(texts)):
            return False
        asks, asked, answers, answered = (vectors[each] for each in texts)
        # Vectors have length 1, so their products are cosines.
        question, answer = float(sum(map(mul, asks, asked))), float(sum(map(mul, answers, answered)))
        return question >= SAME_QUESTION and answer >= SAME_ANSWER

    async def rate(self, key: str, up: bool, *, change: Change) -> Pooled:
        """Add a person's thumb to a pair's score. Raises NotFound, BadInput."""
        found = await self.get(key)
        return await self.change(found.key, lambda now: (now.pair.rated(up), change.reason), change)

    async def remove(self, key: str, *, change: Change) -> None:
        """Take a pair out of every retrieval; its history stays. Raises NotFound, BadInput, Conflict."""
        head = await self.head((await self.get(key)).key)
        await self.retire(head.key, change=change, expected_version=head.version)


def read_lines(lines: Sequence[str], first: int = 1) -> tuple[list[Pair], list[str]]:
    """Read pairs, one per JSON line; return them, and the errors of the other lines by number."""
    pairs, broken = list[Pair](), list[str]()
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            pairs.append(Pair.model_validate_json(line))
        except ValidationError as error:
            broken.append(f"line {number}: {_wrong(error)}")
    return pairs, broken


def _wrong(error: ValidationError) -> str:
    found = error.errors(include_url=False)
    missing = {each["loc"][0] for each in found if each["type"] == "missing"}
    if "answer" in missing:
        return "answer: there is none to a question"
    if "agent" in missing:
        return "agent: it does not say whose pair it is"
    return ": ".join(filter(None, [".".join(map(str, found[0]["loc"])), found[0]["msg"]]))
