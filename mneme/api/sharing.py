"""Operations on a team's pools, retrievers and rubrics, in this process or on a running server."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput, MnemeError
from mneme.library.agents.rubric import Rubric
from mneme.nodes.sharing.exchange import keep
from mneme.nodes.sharing.pools import opened, retrievers_of
from mneme.nodes.sharing.rubrics import FrozenRubric, rubrics_of
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Version
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import Added, MemoryPool, Pooled, read_lines
from mneme.stores.pools.retrievers import UNTRAINED, Retriever

USER = "user"


class RetrieverState(BaseModel):
    """A pool's retriever: the version in use, all versions, and how many memories it has not learned yet."""

    pool: str
    serving: int = Field(description="The version in use; 0: the untrained embedder.")
    versions: list[Retriever]
    memories: int
    waiting: int = Field(description="Memories that no training has used yet.")


class SharingOperations:
    """Operations on a team's pools with their retrievers, and on its rubrics."""

    ROUTE: ClassVar[str] = "sharing"
    REMOTE: ClassVar[Sequence[str]] = (
        "whose",
        "pools",
        "pairs",
        "pair",
        "history",
        "remove",
        "forget",
        "export_lines",
        "import_lines",
        "retriever",
        "serving_problem",
        "roll_back",
        "rubrics",
        "rubric",
        "freeze",
    )
    """The operations that a server offers to the command line."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger, self.team = ledger, team
        self._rubrics = rubrics_of(ledger, team)

    async def whose(self) -> str:
        """Return the team's name; on a server with users it contains the caller's name."""
        return self.team

    async def pools(self) -> list[RetrieverState]:
        """Return every pool of the team that has or had pairs."""
        below = await self._ledger.namespaces(team_namespace(self.team, "pools"), include_retired=True)
        return [await self.retriever(name) for name in dict.fromkeys(each[3] for each in below)]

    async def pairs(self, pool: str, agent: str = "", limit: int = 100) -> list[Pooled]:
        """Return a pool's first pairs, or those of one agent, in the order in which they were added."""
        return await self._pool(pool).first(limit, agent)

    async def pair(self, pool: str, key: str) -> Pooled:
        """Return a pair by its key or the first letters of it. Raises NotFound, BadInput."""
        return await self._pool(pool).get(key)

    async def history(self, pool: str, key: str) -> list[Version]:
        """Return every version of a pair with its reason, oldest first. Raises NotFound, BadInput."""
        found = await self.pair(pool, key)
        return await self._ledger.history(self._pool(pool).namespace, found.key)

    async def remove(self, pool: str, key: str, reason: str) -> str:
        """Remove a pair from retrieval, keeping its history; return its key. Raises NotFound, BadInput."""
        found = await self.pair(pool, key)
        await self._pool(pool).remove(found.key, change=Change(reason=reason, actor=USER))
        return found.key

    async def forget(self, pool: str, key: str, reason: str) -> str:
        """Erase a pair with its history and its training examples; return its key."""
        found = await self.pair(pool, key)
        lessons = RetrieverLessons(self._pool(pool))
        namespaces = (self._pool(pool).namespace, lessons.namespace, lessons.questions)
        heads = [await self._ledger.get(each, found.key) for each in namespaces]
        await self._ledger.forget_records([each for each in heads if each], reason=reason, actor=USER)
        return found.key

    async def export_lines(self, pool: str, start: int = 0, limit: int = 500) -> list[str]:
        """Return pairs as lines of JSON, beginning with the pair at position `start`."""
        found = await self._pool(pool).first(limit, start=start)
        return [each.pair.model_dump_json() for each in found]

    async def import_lines(self, pool: str, lines: list[str], first: int = 1) -> Added:
        """Import pairs, one per JSON line; `first` is the number of the first line."""
        into, change = self._pool(pool), Change(reason="imported", actor=USER)
        pairs, broken = read_lines(lines, first)
        fresh = await keep(into, pairs, change=change)
        return Added(added=sum(fresh), known=len(fresh) - sum(fresh), broken=broken)

    async def retriever(self, pool: str) -> RetrieverState:
        """Return the state of a pool's retriever."""
        of = self._pool(pool)
        retrievers = await retrievers_of(of)
        return RetrieverState(
            pool=pool,
            serving=await retrievers.serving(),
            versions=await retrievers.all(),
            memories=await of.count(),
            waiting=await RetrieverLessons(of).count_waiting(),
        )

    async def serving_problem(self, pool: str) -> str:
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

    async def roll_back(self, pool: str, to: int | None, reason: str) -> int:
        """Go back to an earlier version of the retriever; return its number. Raises BadInput, NotFound."""
        retrievers = await retrievers_of(self._pool(pool))
        return await retrievers.roll_back(to, change=Change(reason=reason, actor=USER))

    async def rubrics(self) -> list[FrozenRubric]:
        """Return each domain's current rubric."""
        return await self._rubrics.all()

    async def rubric(self, name: str, version: int | None = None) -> FrozenRubric:
        """Return a domain's rubric, the latest or a version. Raises BadInput, NotFound."""
        return await (self._rubrics.latest(name) if version is None else self._rubrics.get(name, version))

    async def freeze(self, rubric: Rubric, reason: str) -> FrozenRubric:
        """Store a rubric as the next version, which scores pairs from now on. Raises Conflict."""
        return await self._rubrics.freeze(rubric.name, rubric, change=Change(reason=reason, actor=USER))

    def _pool(self, name: str) -> MemoryPool:
        if not name.strip():
            raise BadInput("The pool is missing.", "Give --pool NAME; see `mneme share pool list`.")
        return MemoryPool(self._ledger, self.team, name)
