"""Our memories in the comparison: none, raw events, the five architectures, and one recall over all."""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from uuid import uuid4

from mneme.evals.compare.memory import Event, Memory, Outcome, Place
from mneme.graphs import memory_agent
from mneme.library.teams.team import empty
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import tokens
from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.sharing.pools import look_up
from mneme.nodes.task_memories.f_memory_update import Agent, f_memory_update
from mneme.prompts.task_memories.task_memories import Course, summarise_trial
from mneme.stores.access import Asker
from mneme.stores.cards.card import Lesson, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.discussions.agent_memory import AgentMemory, MemoryVersion
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.records import Change, team_namespace
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from mneme.stores.recall import recall
from mneme.stores.users.inbox import Message
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory as Fact
from mneme.stores.users.memory import Past

MAX_CANDIDATES = 40
"""Number of texts retrieved for a situation; those that fit the budget are shown."""
TASK_ENDED = Change(reason="a task ended", actor="compare")
OBSERVED = Change(reason="observed", actor="compare")
MEMORY_TASK = "Remember what helps with later tasks of the same kind."
TEMPLATE = {
    "facts": ["What is known, where it is and when it was so."],
    "tried": ["What was tried; what came of it."],
}
MEMORY_TOKENS = 600
"""Maximum tokens of one agent's structured memory."""


class WholeHistory(Memory):
    """Store every event verbatim, and show the newest."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._namespace = team_namespace(place.name, "events")

    async def observe(self, event: Event) -> None:
        """Store the event's line."""
        line = event.line
        await self.place.ledger.insert(self._namespace, {"line": line}, text=line, change=OBSERVED)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the newest events first."""
        # No ranking chooses among them, and their lines are short: a large budget takes many.
        found = await self.place.ledger.records(self._namespace, limit=4 * MAX_CANDIDATES, newest_first=True)
        return [each.text for each in found]


class RawEvents(WholeHistory):
    """Store every event verbatim, and show those whose vectors are nearest to the situation's."""

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the events nearest in meaning."""
        hits = await self.place.ledger.search(self._namespace, situation, limit=MAX_CANDIDATES, mode="dense")
        return [hit.version.text for hit in hits]


class MemoryAgent(Memory):
    """The chatbot's memory agent: facts that are inserted, updated and retired (paper 1)."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._memories = UserMemories(place.ledger, place.name)
        self._context = MemoryContext(user=place.name, memory_agent=place.who)
        self._agent = memory_agent.builder.compile(store=LedgerStore(place.ledger))

    async def observe(self, event: Event) -> None:
        """Remember the event like a message of the chat."""
        said = event.text if len(self.place.roles) == 1 else f"{event.who}: {event.text}"
        time = f"{event.day}T12:00:00+00:00" if event.day else ""
        message = Message(message=said, message_id=uuid4().hex, time=time)
        await self._agent.ainvoke(message, context=self._context)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return facts as the chat recalls them, each with the days from which and until which it holds."""
        found = await self._memories.similar(situation, MAX_CANDIDATES, mode="blend")
        return [line for each in found for line in _lines(each.memory)]


def _lines(memory: Fact) -> list[str]:
    told = Past(content=memory.content, since=memory.since or memory.time[:10], until=memory.until)
    return [
        f"[{each.since}] {each.content}{f' (until {each.until})' if each.until else ''}"
        for each in (told, *memory.past)
    ]


class Cards(Memory):
    """Knowledge cards: lessons of tasks, supported or not by later ones (paper 2)."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._cards = KnowledgeCards(place.ledger, place.name)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the cards that score best for the situation."""
        return [each.card.claim for each in await self._cards.retrieve(situation, MAX_CANDIDATES)]

    async def end_of_task(self, outcome: Outcome) -> None:
        """Store the lesson as a card, or reinforce an equal card."""
        if outcome.lesson:
            # The day tells an outdated lesson from the one that replaced it.
            lesson = Lesson(claim=f"[{outcome.day}] {outcome.lesson}")
            await self._cards.create(
                lesson, TaskOutcome(task=uuid4().hex, success=outcome.success), change=TASK_ENDED
            )


class Synopses(Memory):
    """A manager's synopsis of each task, the latest of which are shown (paper 3)."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._episodes = EpisodicMemory(place.ledger, place.name, "work")
        self._events = list[Event]()

    async def observe(self, event: Event) -> None:
        """Store the event until the task ends."""
        self._events.append(event)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the events since the last synopsis, then the latest synopses."""
        kept = await self._episodes.recall(MAX_CANDIDATES)
        return [
            *(each.line for each in reversed(self._events)),
            *(each.synopses[0] for each in reversed(kept)),
        ]

    async def end_of_task(self, outcome: Outcome) -> None:
        """Summarize the events."""
        result, steps = "succeeded" if outcome.success else "failed", [each.line for each in self._events]
        given = Course(goal=outcome.task, result=f"{result} after {len(steps)} steps", steps=steps)
        said = await ask(summarise_trial, given, self.place.who, lane="background")
        synopsis = " ".join(filter(None, [f"[{outcome.day}]", said.value.summary, outcome.lesson]))
        ended = {"episode": outcome.task, "category": "work", "success": outcome.success, "steps": len(steps)}
        record = EpisodeRecord(run=uuid4().hex, synopses=[synopsis], time=outcome.day, **ended)
        await self._episodes.keep(record, change=TASK_ENDED)
        self._events.clear()


class StructuredMemory(Memory):
    """A structured memory for each agent, which its own outputs change; all of them are shown (paper 4)."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        within = team_namespace(place.name, "compared")
        self._stores = {role: AgentMemory(place.ledger, within, role) for role in place.roles}
        self._known = dict[str, MemoryVersion]()

    async def observe(self, event: Event) -> None:
        """Update the memory of the one whose event it is."""
        store = self._stores[event.who]
        # Each agent updates its own memory alone (§3).
        known = self._known.get(event.who) or await store.begin(empty(TEMPLATE), change=OBSERVED)
        agent = Agent(event.who, TEMPLATE, MEMORY_TOKENS, self.place.who, "background", MEMORY_TASK)
        done = await f_memory_update(agent, known.memory, event.line)
        change = Change(reason=done.reason, actor=event.who, model=done.responder)
        self._known[event.who] = await store.update(
            done.memory, turn=known.turn + 1, change=change, expected_version=known.version
        )

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the agents' memories by turns, each one's newest entries first."""
        lists = [
            [str(entry) for entry in reversed(entries)]
            for known in self._known.values()
            for entries in known.memory.values()
        ]
        return [each for turn in zip_longest(*lists) for each in turn if each]


class SharedPool(Memory):
    """A pool of prompts and answers that did well, found by its retriever (paper 5)."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._pool = MemoryPool(place.ledger, place.name, "compared")

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the pairs that the pool's retriever ranks first."""
        vector = (await look_up(self._pool, situation)).vector  # of the trained retriever, once one serves
        found = await self._pool.retrieve(situation, MAX_CANDIDATES, vector=vector)
        return [f"{each.pair.prompt} Answered: {each.pair.answer}" for each in found]

    async def end_of_task(self, outcome: Outcome) -> None:
        """Store what worked."""
        if outcome.success and outcome.lesson:  # a failure would score below the paper's threshold
            answer = f"[{outcome.day}] {outcome.lesson}"
            said = {"agent": self.place.roles[0], "domain": "compared", "score": 100}
            await self._pool.add(Pair(prompt=outcome.task, answer=answer, **said), change=TASK_ENDED)


class CommonRecall(Memory):
    """The memory agent, cards, synopses and pool together, found by one recall over all kinds."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._parts = [kind(place) for kind in (MemoryAgent, Cards, Synopses, SharedPool)]

    async def observe(self, event: Event) -> None:
        """Pass the event to every part."""
        for each in self._parts:
            await each.observe(event)

    async def end_of_task(self, outcome: Outcome) -> None:
        """Let every part learn from the outcome."""
        for each in self._parts:
            await each.end_of_task(outcome)

    async def recall(self, situation: str, budget: int) -> Sequence[str]:
        """Return the result of the one recall over all kinds."""
        name = self.place.name
        # User and team share the course's name: all four parts are asked.
        asker = Asker(user=name, teams=(name,))
        found = await recall(self.place.ledger, situation, asker, budget=budget, cost=tokens)
        return [each.line for each in found]


OWN_MEMORIES: Mapping[str, Callable[[Place], Memory]] = {
    "none": Memory,
    "whole_history": WholeHistory,
    "raw_events": RawEvents,
    "memory_agent": MemoryAgent,
    "cards": Cards,
    "synopses": Synopses,
    "structured": StructuredMemory,
    "shared_pool": SharedPool,
    "common_recall": CommonRecall,
}
"""Our memories by the name that `--memory` takes."""
