"""Operations on a team's pools of pairs, their retrievers, and the rubrics that score pairs."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mneme.api.operation import Key, Limit, Offset, Operations, Reason, changes, reads
from mneme.core.errors import BadInput, MnemeError, NotFound
from mneme.library.agents.rubric import Rubric
from mneme.nodes.sharing.choosing import found_by
from mneme.nodes.sharing.pools import FrozenRubric, look_up, opened, retrievers_of, rubrics_of, watch
from mneme.stores.ledger.records import MAX_INT, Version, team_namespace
from mneme.stores.pools.lessons import RetrieverLessons, keep
from mneme.stores.pools.memory_pool import Added, MemoryPool, Pooled, read_lines
from mneme.stores.pools.retrievers import UNTRAINED, Retriever
from mneme.stores.pools.thresholds import Threshold, Thresholds, key_of

PoolName = Annotated[str, Field(min_length=1, description="The pool's name.", examples=["literary_creation"])]
AgentName = Annotated[str, Field(description="Only pairs that this agent answered; none: all.")]
PairLines = Annotated[Sequence[str], Field(description="Pairs, one per line of JSON.")]
FirstLine = Annotated[
    int, Field(ge=1, le=MAX_INT, description="The number of the first line, for what is said of it.")
]
Thumb = Annotated[bool, Field(description="Whether the pair is good.")]
Domain = Annotated[str, Field(description="The domain's name.", examples=["limerick"])]
RetrieverVersion = Annotated[
    int | None,
    Field(ge=0, le=MAX_INT, description="Which version; 0: the untrained embedder; none: the one before."),
]
RubricVersion = Annotated[
    int | None, Field(ge=0, le=MAX_INT, description="Which version; 0: as it is shipped; none: the latest.")
]


class RetrieverState(BaseModel):
    """A pool's retriever: the version in use, all versions, and how many memories it has not learned yet."""

    pool: str
    serving: int = Field(description="The version in use; 0: the untrained embedder.")
    versions: list[Retriever]
    memories: int
    waiting: int = Field(description="Memories that no training has used yet.")


class Pools(Operations):
    """Operations on a team's pools with their retrievers, and on its rubrics."""

    OWNER = "team"

    def _prepare(self) -> None:
        self._rubrics = rubrics_of(self._ledger, self._owner)
        self._thresholds = Thresholds(self._ledger, self._owner)

    @reads("pools")
    async def list(self) -> Sequence[RetrieverState]:
        """Return every pool of the team that has or had pairs."""
        return [await self.retriever(name) for name in await self._names()]

    async def _names(self) -> Sequence[str]:
        below = await self._ledger.namespaces(team_namespace(self._owner, "pools"), include_retired=True)
        return [*dict.fromkeys(each[3] for each in below)]  # ("teams", team, "pools", pool, …)

    @reads("pools/{pool}/pairs")
    async def pairs(
        self, pool: PoolName, agent: AgentName = "", limit: Limit = 100, offset: Offset = 0
    ) -> Sequence[Pooled]:
        """Return a pool's pairs, or those of one agent, as they were added. Raises NotFound."""
        return await self._pool(pool).first(limit, agent, offset) or await self._nothing_in(pool)

    async def _nothing_in(self, pool: str) -> Sequence[Pooled]:
        """Return an empty list for a pool without pairs. Raises NotFound if there never was such a pool."""
        if pool not in (known := await self._names()):
            raise NotFound(f"There is no pool {pool}.", f"There are: {', '.join(known) or 'none yet'}.")
        return []

    @reads("pools/{pool}/search")
    async def search(
        self,
        pool: PoolName,
        query: Annotated[str, Field(min_length=1, max_length=8000, description="What is to be answered.")],
        limit: Annotated[int, Field(ge=1, le=100, description="How many at most.")] = 5,
    ) -> Sequence[Pooled]:
        """Return the pairs that help most with a question, the best first, as the agents get them (§3.2).

        The pool's retriever finds them, or the untrained embedder; `similarity` is its cosine. Where the
        embedder is absent they are found by words, and have none. Raises NotFound, BadInput.
        """
        if not query.strip():
            raise BadInput("The question is empty.", "Give some words.")
        of = self._pool(pool)
        await of.check_filled()
        asked = await look_up(of, query)
        hits = await found_by(of, query, limit, asked)
        found = hits[:limit]
        return found if asked.vector else [each.model_copy(update={"similarity": None}) for each in found]

    @reads("pools/{pool}/pairs/{key}")
    async def pair(self, pool: PoolName, key: Key) -> Pooled:
        """Return a pair by its key or the first letters of it. Raises NotFound, BadInput."""
        try:
            return await self._pool(pool).get(key)
        except NotFound:
            await self._nothing_in(pool)
            raise

    @reads("pools/{pool}/pairs/{key}/history")
    async def history(self, pool: PoolName, key: Key) -> Sequence[Version]:
        """Return every version of a pair with its reason, oldest first. Raises NotFound, BadInput."""
        found = await self.pair(pool, key)
        return await self._ledger.history(self._pool(pool).namespace, found.key)

    @changes("pools/{pool}/pairs/{key}/rate")
    async def rate(self, pool: PoolName, key: Key, up: Thumb = True, reason: Reason = "") -> Pooled:
        """Rate a pair up or down: its score is the mean of the scorer's and of 100 or 0 for each rating.

        A pair with a score of at most 50 and more ratings down than up is shown to no agent. Raises NotFound,
        BadInput, Conflict.
        """
        of, change = self._pool(pool), self._change(reason, "a person's rating")
        found = await self.pair(pool, key)
        rated = await of.rate(found.key, up, change=change)
        await watch(of, rated.pair.retriever, 100 if up else 0)  # the version that found its examples
        return rated

    @changes("pools/{pool}/pairs/{key}/remove")
    async def remove(self, pool: PoolName, key: Key, reason: Reason = "") -> str:
        """Remove a pair from retrieval, keeping its history; return its key. Raises NotFound, BadInput."""
        found = await self.pair(pool, key)
        await self._pool(pool).remove(found.key, change=self._change(reason, "a person's decision"))
        return found.key

    @changes("pools/{pool}/pairs/{key}/forget", erases=True)
    async def forget(self, pool: PoolName, key: Key, reason: Reason = "") -> str:
        """Erase a pair with its history and its training examples; return its key."""
        found = await self.pair(pool, key)
        lessons = RetrieverLessons(self._pool(pool))
        # A pair's training examples have its key; its text is in kept answers, too.
        namespaces = (self._pool(pool).namespace, lessons.namespace, lessons.questions.namespace)
        heads = [await self._ledger.get(each, found.key) for each in namespaces]
        await self._ledger.forget_records(
            [each for each in heads if each],
            reason=reason,
            actor=self._caller,
            rewritten=await self.answers.without_texts(),
        )
        return found.key

    @reads("pools/{pool}/export")
    async def export_lines(self, pool: PoolName, start: Offset = 0, limit: Limit = 500) -> Sequence[str]:
        """Return pairs as lines of JSON, beginning with the pair at position `start`. Raises NotFound."""
        found = await self._pool(pool).first(limit, start=start) or await self._nothing_in(pool)
        return [each.pair.model_dump_json() for each in found]

    @changes("pools/{pool}/import")
    async def import_lines(self, pool: PoolName, lines: PairLines, first: FirstLine = 1) -> Added:
        """Import pairs, one per JSON line; `first` is the number of the first line."""
        into, change = self._pool(pool), self._change("", "imported")
        pairs, broken = read_lines(lines, first)
        fresh = await keep(into, pairs, change=change)
        return Added(added=sum(fresh), known=len(fresh) - sum(fresh), broken=broken)

    @reads("pools/{pool}/retriever")
    async def retriever(self, pool: PoolName) -> RetrieverState:
        """Return the state of a pool's retriever. Raises NotFound."""
        of = self._pool(pool)
        if not (memories := await of.count()):
            await self._nothing_in(pool)
        retrievers = await retrievers_of(of)
        return RetrieverState(
            pool=pool,
            serving=await retrievers.serving(),
            versions=await retrievers.all(),
            memories=memories,
            waiting=await RetrieverLessons(of).count_on("waiting"),
        )

    @reads("pools/{pool}/retriever/problem")
    async def serving_problem(self, pool: PoolName) -> str:
        """Return why the retriever in use cannot be read; "" where it can."""
        of = self._pool(pool)
        retrievers = await retrievers_of(of)
        number = await retrievers.serving()
        if number == UNTRAINED:
            return ""
        try:
            await opened(of, retrievers, number)
        except MnemeError as problem:
            return str(problem)
        return ""

    @changes("pools/{pool}/retriever/rollback")
    async def rollback(
        self, pool: PoolName, to_version: RetrieverVersion = None, reason: Reason = ""
    ) -> RetrieverState:
        """Go back to an earlier version of the retriever; return its state. Raises BadInput, NotFound."""
        retrievers = await retrievers_of(self._pool(pool))
        await retrievers.roll_back(to_version, change=self._change(reason, "a person's decision"))
        return await self.retriever(pool)

    @reads("rubrics")
    async def rubrics(self) -> Sequence[FrozenRubric]:
        """Return each domain's current rubric."""
        return [await self._with_thresholds(each) for each in await self._rubrics.all()]

    @reads("rubrics/{name}")
    async def rubric(self, name: Domain, version: RubricVersion = None) -> FrozenRubric:
        """Return a domain's rubric, the latest or a version. Raises BadInput, NotFound."""
        found = self._rubrics.latest(name) if version is None else self._rubrics.get(name, version)
        return await self._with_thresholds(await found)

    async def _with_thresholds(self, found: FrozenRubric) -> FrozenRubric:
        known = await self._thresholds.of_rubric(found.rubric.name, found.rubric)
        return found.model_copy(update={"thresholds": known})

    @changes("rubrics/{name}/calibrate")
    async def calibrate(
        self,
        name: Domain,
        agents: Annotated[
            str, Field(description="Who grades: `rules`, `auto` or a model.", examples=["ollama:llama3.1:8b"])
        ] = "auto",
        pairs: Annotated[int, Field(ge=8, le=200, description="Good answers that are graded.")] = 12,
        scoring: Annotated[
            Literal["criteria", "printed"], Field(description="By points for criteria, or one number.")
        ] = "criteria",
        seed: Annotated[int, Field(ge=0, le=MAX_INT, description="Draws answers and damage.")] = 0,
        agent: Annotated[
            str, Field(description="The YAML text of agents of your own, --- between two.")
        ] = "",
    ) -> Threshold:
        """Store the score above which a domain's pairs are kept, found on good and damaged answers (§3.1).

        It applies to pairs that this grader scores by this rubric, if no threshold is given. Raises BadInput,
        and stores nothing, if good answers are few or cannot be distinguished from damaged ones.
        """
        from mneme.nodes.sharing.calibration import calibrate  # noqa: PLC0415  (slow to import)

        frozen = await self._rubrics.latest(name)
        found = await calibrate(
            self._pool(name), frozen, agents, scoring=scoring, wanted=pairs, seed=seed, agents=agent
        )
        change = self._change("calibrated", "").model_copy(update={"model": found.grader})
        return await self._thresholds.put(key_of(name, found.grader, scoring), found, change=change)

    @changes("rubrics")
    async def freeze(self, rubric: Rubric, reason: Reason = "") -> FrozenRubric:
        """Store a rubric as the next version, which scores pairs from now on. Raises Conflict."""
        change = self._change(reason, "a person's decision")
        return await self._rubrics.freeze(rubric.name, rubric, change=change)

    def _pool(self, name: str) -> MemoryPool:
        if not name.strip():
            raise BadInput("The pool is missing.", "Give --pool NAME; see `mneme share pool list`.")
        return MemoryPool(self._ledger, self._owner, name)
