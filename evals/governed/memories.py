"""The memories that are compared: ours, and the ways in which teams keep one today.

Packages are played where they are installed.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.core.settings import settings
from mneme.evals.governed.stories import TEAMS, Fact
from mneme.evals.measuring import searched_store
from mneme.evals.packages import Hit, LangMem, Mem0, Package, Scope
from mneme.models.embedding.embedders import Embedder
from mneme.stores.cards.card import Lesson
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.provenance import made_from
from mneme.stores.users.promotion import TeamFacts

TEXTS_PER_RIVAL = 5
"""Maximum texts that a rival shows; ours may use as many tokens as these have at most."""
STORY_RECALL_TOKENS = 150


class Shown(NamedTuple):
    """A text shown to a caller, and its owner, if the memory reports one."""

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
        """Store a statement of its owner, or its new version."""
        memories = Memories(self._ledger, self._user(fact.owner))
        if fact.about in self._keys:
            await memories.update(self._keys[fact.about], fact.text)
        else:
            self._keys[fact.about] = (await memories.add(fact.text)).key

    async def share(self, fact: Fact) -> None:
        """Share it with the owner's team."""
        shared = SharedMemory(self._ledger, self._user(fact.owner))
        team = self._user(TEAMS[fact.owner])
        self._copies[fact.about] = (await shared.promote(self._keys[fact.about], team)).key

    async def decide(self, fact: Fact, text: str) -> None:
        """Store the team's decision."""
        team = self._user(TEAMS[fact.owner])
        source = await TeamFacts(self._ledger, team).head(self._copies[fact.about])
        change = made_from(Change(reason="decided", actor="leader"), [source.reference])
        await KnowledgeCards(self._ledger, team).propose(Lesson(claim=text), change=change)

    async def forget(self, fact: Fact) -> None:
        """Forget it, as its owner asks."""
        await Memories(self._ledger, self._user(fact.owner)).forget(self._keys[fact.about])

    async def ask(self, person: str, question: str) -> Sequence[Shown]:
        """Return the texts that a person is shown for a question."""
        shared = SharedMemory(self._ledger, self._user(person))
        found = await shared.recall(question, teams=[self._user(TEAMS[person])], tokens=STORY_RECALL_TOKENS)
        return [Shown(each.text, each.origin) for each in found]


class ByPolicy(Mneme):
    """The same, with a policy: when a fact is shared, its changes are always shared, too."""

    async def share(self, fact: Fact) -> None:
        await super().share(fact)
        shared = SharedMemory(self._ledger, self._user(fact.owner))
        known = [subject for each in await shared.policies() for subject in each.about]
        await shared.set_policy(self._user(TEAMS[fact.owner]), "always", [*known, fact.about])


class OfStore:
    """LangGraph's store, with a namespace for each user and team; what is shared is copied."""

    def __init__(self, story: str, embedder: Embedder) -> None:
        self._story = story
        self.store = searched_store(embedder)

    def own(self, person: str) -> Scope:
        """Return the namespace of a person's texts."""
        return ("users", person)

    def together(self, person: str) -> Scope:
        """Return the namespace of the texts of the person's team."""
        return ("teams", TEAMS[person])

    async def put(self, place: Scope, key: str, text: str, who: str) -> None:
        await self.store.aput(place, key, {"text": text})

    async def found(self, place: Scope, question: str) -> list[Hit]:
        hits = await self.store.asearch(place, query=question, limit=TEXTS_PER_RIVAL)
        return [Hit(each.score or 0.0, each.value["text"], place[-1]) for each in hits]

    async def delete(self, place: Scope, key: str) -> None:
        await self.store.adelete(place, key)

    async def say(self, fact: Fact) -> None:
        await self.put(self.own(fact.owner), fact.about, fact.text, fact.owner)

    async def share(self, fact: Fact) -> None:
        await self.put(self.together(fact.owner), fact.about, fact.text, fact.owner)

    async def decide(self, fact: Fact, text: str) -> None:
        await self.put(self.together(fact.owner), text, text, fact.owner)

    async def forget(self, fact: Fact) -> None:
        await self.delete(self.own(fact.owner), fact.about)

    async def ask(self, person: str, question: str) -> Sequence[Shown]:
        places = dict.fromkeys([self.own(person), self.together(person)])
        found = [each for place in places for each in await self.found(place, question)]
        return [Shown(text, origin) for _, text, origin in sorted(found, reverse=True)[:TEXTS_PER_RIVAL]]


class OnePool(OfStore):
    """One vector pool for all: a new version is added, and owners are not separated."""

    def own(self, person: str) -> Scope:
        return ("pool",)

    together = own

    async def say(self, fact: Fact) -> None:
        await self.put(("pool",), f"{fact.about}, {len(fact.values)}", fact.text, fact.owner)

    async def share(self, fact: Fact) -> None:
        """Do nothing: everybody has it."""

    async def forget(self, fact: Fact) -> None:
        for number in range(1, len(fact.values) + 1):
            await self.delete(("pool",), f"{fact.about}, {number}")


class IsolatedMemory(OfStore):
    """A separate memory for each person."""

    def together(self, person: str) -> Scope:
        return self.own(person)

    async def share(self, fact: Fact) -> None:
        """Do nothing: there is no way to."""


class OfPackage(OfStore):
    """The memory of a package, with the ids of its texts kept."""

    def __init__(self, story: str, embedder: Embedder, package: type[Package]) -> None:
        super().__init__(story, embedder)
        self._package = package(embedder, settings().home / f"{package.__name__} {story}")
        self._ids = defaultdict[tuple[Scope, str], list[str]](list)

    async def put(self, place: Scope, key: str, text: str, who: str) -> None:
        known = self._ids[place, key]
        if known and self._package.UPDATES:  # mem0 that infers decides by itself what a new text replaces
            await self._package.update(place, known[0], text)
        else:
            known += await self._package.add(place, text, who)

    async def found(self, place: Scope, question: str) -> list[Hit]:
        return await self._package.found(place, question, TEXTS_PER_RIVAL)

    async def delete(self, place: Scope, key: str) -> None:
        for known in self._ids.pop((place, key), []):
            await self._package.delete(place, known)


class Mem0Told(Mem0):
    """The package `mem0ai`, given each message as by default: a scripted model extracts the facts."""

    UPDATES, infers = False, True

    async def add(self, scope: Scope, text: str, who: str = "") -> list[str]:
        self.chat.responses = [json.dumps({"memory": [{"id": "0", "text": text}]})]
        return await super().add(scope, text, who)


Memory = Mneme | OfStore
GOVERNED_RIVALS: Mapping[str, Callable[[str, Embedder], OfStore]] = {
    "one vector pool": OnePool,
    "isolated memories": IsolatedMemory,
    "LangGraph's store": OfStore,
    **({"langmem": partial(OfPackage, package=LangMem)} if find_spec(LangMem.NAME) else {}),
    **({"mem0ai, ids kept": partial(OfPackage, package=Mem0)} if find_spec(Mem0.NAME) else {}),
    **({"mem0ai, told": partial(OfPackage, package=Mem0Told)} if find_spec(Mem0.NAME) else {}),
}
"""The compared memories by name; packages only where they are installed."""
