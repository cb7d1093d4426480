"""What the command line may do with a team's pools, retrievers and rubrics, here or through a server."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from agents.rubric import Rubric
from mneme.errors import BadInput, MnemeError
from nodes.memory_exchange import keep
from nodes.memory_pools import opened, retrievers_of
from stores.ledger import Ledger
from stores.lessons import Lessons
from stores.memory_pool import Added, MemoryPool, Pooled, read_lines
from stores.records import Change, Version
from stores.retrievers import UNTRAINED, Retriever
from stores.rubrics import Frozen, Rubrics

USER = "user"


class RetrieverState(BaseModel):
    """A pool's retriever: which version serves, every version, and what waits to be learned."""

    pool: str
    serving: int = Field(description="0: the embedder as it came.")
    versions: list[Retriever]
    memories: int
    waiting: int = Field(description="Memories that no training has looked at yet.")


class SharingOperations:
    """A team's pools with their retrievers, and its rubrics."""

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
    """The operations that a server does for the command line."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger, self.team = ledger, team
        self._rubrics = Rubrics(ledger, team)

    async def whose(self) -> str:
        """Return the team whose pools these are: a server answers with the caller's own of that name."""
        return self.team

    async def pools(self) -> list[RetrieverState]:
        """Return every pool of the team that holds or held something."""
        below = await self._ledger.namespaces(("teams", self.team, "pools"), include_retired=True)
        return [await self.retriever(name) for name in dict.fromkeys(each[3] for each in below)]

    async def pairs(self, pool: str, agent: str = "", limit: int = 100) -> list[Pooled]:
        """Return the first pairs of a pool, or of one agent in it, in the order in which they came in."""
        return await self._pool(pool).first(limit, agent)

    async def pair(self, pool: str, key: str) -> Pooled:
        """Return a pair by its key, or by enough of its beginning. Raises NotFound, BadInput."""
        return await self._pool(pool).get(key)

    async def history(self, pool: str, key: str) -> list[Version]:
        """Return every version of a pair with its reason, oldest first. Raises NotFound, BadInput."""
        found = await self.pair(pool, key)
        return await self._ledger.history(self._pool(pool).namespace, found.key)

    async def remove(self, pool: str, key: str, reason: str) -> str:
        """Take a pair out of every retrieval; return its key. Raises NotFound, BadInput."""
        found = await self.pair(pool, key)
        await self._pool(pool).remove(found.key, change=Change(reason=reason, actor=USER))
        return found.key

    async def forget(self, pool: str, key: str, reason: str) -> str:
        """Erase a pair for good, and what the retriever was to learn from it; return its key."""
        found = await self.pair(pool, key)
        lessons = Lessons(self._pool(pool))
        namespaces = (self._pool(pool).namespace, lessons.namespace, lessons.questions)
        heads = [await self._ledger.get(each, found.key) for each in namespaces]
        await self._ledger.forget_records([each for each in heads if each], reason=reason, actor=USER)
        return found.key

    async def export_lines(self, pool: str, start: int = 0, limit: int = 500) -> list[str]:
        """Return pairs as lines of JSON, from the given place in the pool's order onwards."""
        found = await self._pool(pool).first(limit, start=start)
        return [each.pair.model_dump_json() for each in found]

    async def import_lines(self, pool: str, lines: list[str], first: int = 1) -> Added:
        """Bring pairs in, one JSON line each; `first` is the number of the first line."""
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
            waiting=await Lessons(of).count_waiting(),
        )

    async def serving_problem(self, pool: str) -> str:
        """Say why the retriever that serves cannot be read; nothing where it can."""
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
        """Let an earlier retriever serve again; return its number. Raises BadInput, NotFound."""
        retrievers = await retrievers_of(self._pool(pool))
        return await retrievers.roll_back(to, change=Change(reason=reason, actor=USER))

    async def rubrics(self) -> list[Frozen]:
        """Return what each domain is scored by now."""
        return await self._rubrics.all()

    async def rubric(self, name: str, version: int | None = None) -> Frozen:
        """Return a domain's rubric, the latest or a version. Raises BadInput, NotFound."""
        return await (self._rubrics.latest(name) if version is None else self._rubrics.get(name, version))

    async def freeze(self, rubric: Rubric, reason: str) -> Frozen:
        """Let pairs be scored by a rubric from now on. Raises Conflict."""
        return await self._rubrics.freeze(rubric, change=Change(reason=reason, actor=USER))

    def _pool(self, name: str) -> MemoryPool:
        if not name.strip():
            raise BadInput("Which pool?", "Give --pool; see `mneme share pool list`.")
        return MemoryPool(self._ledger, self.team, name)
