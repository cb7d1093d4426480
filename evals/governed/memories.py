"""The memories that are compared: ours, and four ways in which teams keep one today."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.evals.governed.stories import TEAMS, Fact
from mneme.evals.measuring import searched_store
from mneme.models.embedding.embedders import Embedder
from mneme.stores.cards.card import Lesson
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.provenance import made_from
from mneme.stores.team_facts import TeamFacts

LANGMEM = "langmem"
"""A package that nothing of ours needs, and that is compared where somebody has installed it."""
SHOWN = 5
"""Texts that a rival shows at most; ours has as many tokens as these have at most."""
BUDGET = 150


class Shown(NamedTuple):
    """A text that is shown to who asks, and whose it is, as far as the memory says so."""

    text: str
    origin: str = ""


class Mneme:
    """Private memories, facts that are promoted to a team, cards that name what they were made from."""

    def __init__(self, story: str, ledger: Ledger) -> None:
        self._story, self._ledger = story, ledger
        self._keys: dict[str, str] = {}
        self._copies: dict[str, str] = {}

    def _user(self, name: str) -> str:
        return f"{self._story}-{name}"

    async def say(self, fact: Fact) -> None:
        """Keep what its owner says, or says anew."""
        memories = Memories(self._ledger, self._user(fact.owner))
        if fact.about in self._keys:
            await memories.update(self._keys[fact.about], fact.text)
        else:
            self._keys[fact.about] = (await memories.add(fact.text)).key

    async def share(self, fact: Fact) -> None:
        """Tell the owner's team."""
        shared = SharedMemory(self._ledger, self._user(fact.owner))
        team = self._user(TEAMS[fact.owner])
        self._copies[fact.about] = (await shared.promote(self._keys[fact.about], team)).key

    async def decide(self, fact: Fact, text: str) -> None:
        """Keep what the team made of it."""
        team = self._user(TEAMS[fact.owner])
        source = await TeamFacts(self._ledger, team).head(self._copies[fact.about])
        change = made_from(Change(reason="decided", actor="leader"), [source.reference])
        await KnowledgeCards(self._ledger, team).propose(Lesson(claim=text), change=change)

    async def forget(self, fact: Fact) -> None:
        """Forget it, as its owner asks."""
        await Memories(self._ledger, self._user(fact.owner)).forget(self._keys[fact.about])

    async def ask(self, person: str, question: str) -> Sequence[Shown]:
        """Show a person what bears on a question."""
        shared = SharedMemory(self._ledger, self._user(person))
        found = await shared.recall(question, teams=[self._user(TEAMS[person])], budget=BUDGET)
        return [Shown(each.text, each.origin) for each in found]


class OfStore:
    """LangGraph's store, with a namespace for each user and team; what is shared is copied."""

    def __init__(self, story: str, embedder: Embedder) -> None:
        self._story = story
        self.store = searched_store(embedder)

    def own(self, person: str) -> tuple[str, ...]:
        """Return where a person's texts are."""
        return ("users", person)

    def together(self, person: str) -> tuple[str, ...]:
        """Return where those of the person's team are."""
        return ("teams", TEAMS[person])

    async def put(self, place: tuple[str, ...], key: str, text: str) -> None:
        await self.store.aput(place, key, {"text": text})

    async def found(self, place: tuple[str, ...], question: str) -> list[tuple[float, str]]:
        hits = await self.store.asearch(place, query=question, limit=SHOWN)
        return [(each.score or 0.0, each.value["text"]) for each in hits]

    async def delete(self, place: tuple[str, ...], key: str) -> None:
        await self.store.adelete(place, key)

    async def say(self, fact: Fact) -> None:
        await self.put(self.own(fact.owner), fact.about, fact.text)

    async def share(self, fact: Fact) -> None:
        await self.put(self.together(fact.owner), fact.about, fact.text)

    async def decide(self, fact: Fact, text: str) -> None:
        await self.put(self.together(fact.owner), text, text)

    async def forget(self, fact: Fact) -> None:
        await self.delete(self.own(fact.owner), fact.about)

    async def ask(self, person: str, question: str) -> Sequence[Shown]:
        places = dict.fromkeys([self.own(person), self.together(person)])
        found = [each for place in places for each in await self.found(place, question)]
        return [Shown(text) for _, text in sorted(found, reverse=True)[:SHOWN]]


class OnePool(OfStore):
    """One vector pool for all: what is said anew is added, and nobody is told apart."""

    def own(self, person: str) -> tuple[str, ...]:
        return ("pool",)

    together = own

    async def say(self, fact: Fact) -> None:
        await self.put(("pool",), f"{fact.about}, {len(fact.values)}", fact.text)

    async def share(self, fact: Fact) -> None:
        """Do nothing: everybody has it."""

    async def forget(self, fact: Fact) -> None:
        for number in range(1, len(fact.values) + 1):
            await self.delete(("pool",), f"{fact.about}, {number}")


class Isolated(OfStore):
    """Everybody has a memory of their own, and nobody another's."""

    def together(self, person: str) -> tuple[str, ...]:
        return self.own(person)

    async def share(self, fact: Fact) -> None:
        """Do nothing: there is no way to."""


class LangMem(OfStore):
    """The tools of the package `langmem` on LangGraph's store, as an agent would call them."""

    def __init__(self, story: str, embedder: Embedder) -> None:
        super().__init__(story, embedder)
        self._ids: dict[Any, str] = {}

    async def _manage(self, place: tuple[str, ...], **said: str) -> str:
        make: Any = import_module(LANGMEM).create_manage_memory_tool
        return str(await make(namespace=place, store=self.store).ainvoke(said))

    async def put(self, place: tuple[str, ...], key: str, text: str) -> None:
        if known := self._ids.get((place, key)):
            await self._manage(place, content=text, action="update", id=known)
        else:
            told = await self._manage(place, content=text, action="create")
            self._ids[place, key] = told.rsplit(" ", 1)[-1]

    async def found(self, place: tuple[str, ...], question: str) -> list[tuple[float, str]]:
        hits = await self.store.asearch(place, query=question, limit=SHOWN)
        return [(each.score or 0.0, str(each.value["content"])) for each in hits]

    async def delete(self, place: tuple[str, ...], key: str) -> None:
        if known := self._ids.pop((place, key), None):
            await self._manage(place, action="delete", id=known)


Memory = Mneme | OfStore
RIVALS: Mapping[str, Callable[[str, Embedder], OfStore]] = {
    "one vector pool": OnePool,
    "isolated memories": Isolated,
    "LangGraph's store": OfStore,
    **({"langmem": LangMem} if find_spec(LANGMEM) else {}),
}
"""By name; `langmem` where its package is installed."""
