"""The state of compound learning between its steps, and functions that all steps share."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from operator import add
from textwrap import shorten
from typing import Annotated, Any, Literal, TypeVar, cast

from langgraph.types import Overwrite
from pydantic import BaseModel
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.environments.trial import Trial
from mneme.environments.worlds import World
from mneme.models.asking.asking import Lane, ask
from mneme.models.asking.counting import Asked, counting, sum_counts
from mneme.nodes.learning.context import LearningRuntime, cards_of, who_answers
from mneme.nodes.learning.worlds import STORY, Problem, advice_of, known_pattern, open_world
from mneme.nodes.messages import said_in
from mneme.nodes.workflow import Plain, Typed
from mneme.prompts.learning.compound_learning.challenge import Objection
from mneme.prompts.learning.compound_learning.compile import Finding
from mneme.prompts.learning.compound_learning.research import Draft
from mneme.prompts.learning.compound_learning.task import Failing, InVain, Known
from mneme.prompts.prompt import Prompt
from mneme.stores.cards.card import Card, DeprecatedApproach
from mneme.stores.cards.knowledge_cards import KnowledgeCards

Role = Literal["researcher", "devils_advocate", "leader", "monitor"]


class TriedDraft(TypedDict):
    """A draft and the result of its quick trial."""

    draft: Draft
    trial: Trial | None


class LoggedObjection(BaseModel):
    """An objection in the log, with its round; `closed_by` says what closed it."""

    round: int
    objection: Objection
    status: Literal["open", "closed"] = "open"
    closed_by: str = ""

    def __str__(self) -> str:
        return f"{self.objection} ({self.closed_by or 'still open'}, to draft {self.round})"

    @property
    def blocks(self) -> bool:
        """Return whether it is open and blocks the draft."""
        return self.status == "open" and self.objection.severity == "blocking"

    def closed(self, by: str) -> "LoggedObjection":
        """Return the objection closed by a patch or a choice, or, with an empty `by`, open again."""
        return self.model_copy(update={"status": "closed" if by else "open", "closed_by": by})


class Packet(TypedDict):
    """The leader's resolution packet (§3, step 4)."""

    answer: str
    rationale: str
    confidence: float
    solved: bool
    judged_by: Literal["environment", "leader"]
    sources: dict[str, list[str]]
    metrics: dict[str, Any]
    uncertainties: list[str]
    fallbacks: list[str]
    objections: list[LoggedObjection]
    rubric: dict[str, bool]
    approved: list[str]
    verify_new: bool


class Learned(TypedDict):
    """One change to the knowledge base: the card, what changed, and why."""

    event: str
    card: str
    version: int
    status: str
    claim: str
    why: str
    dispute: str


class Result(TypedDict, total=False):
    """The answer to a task, and what the team learned from it."""

    task_id: str
    packet: Annotated[Packet, Plain]
    learned: list[Learned]
    iterations: int
    answered_by: list[str]
    asked: Annotated[Asked, sum_counts]


class State(Problem, Result, total=False):
    """The task, what was recalled, every draft, the log of objections, and the costs."""

    schema_name: str
    snapshot: str
    features: str
    cards: Annotated[list[Known], Typed]
    pitfalls: Annotated[list[Known], Typed]
    retrieval_ms: float
    shared: list[str]
    facts: list[str]
    drafts: Annotated[list[TriedDraft], Typed]
    log: Annotated[list[LoggedObjection], Typed]
    probes: list[str]
    measured: Annotated[Trial | None, Typed]
    final: int
    findings: Annotated[list[Finding], Typed]
    seconds: Annotated[float, add]
    responders: Annotated[list[str], add]


Update = dict[str, Any]
G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel)
Drafted = TypeVar("Drafted", bound=Draft)


@dataclass(frozen=True)
class Step:
    """A step of a task: the state, the run, the task's world, and the team's cards."""

    state: State
    runtime: LearningRuntime
    world: World
    cards: KnowledgeCards

    @property
    def used(self) -> list[Known]:
        """Return the cards that the first draft used; patches may abandon them."""
        return [self.state["cards"][number] for number in self.draft(0).used]

    def draft(self, number: int) -> Draft:
        """Return the draft with that number, counted from 0; -1 is the latest."""
        return self.state["drafts"][number]["draft"]

    def tell(self, name: str, **what: Any) -> None:
        """Report the result of the step to the run's stream."""
        self.runtime.stream_writer({"step": name, **what})

    async def ask(
        self, role: Role, question: Prompt[G, A], given: G, lane: Lane = "user"
    ) -> tuple[A, Update]:
        """Ask the model of a role; return its answer, and the update that names who answered."""
        answered = await ask(question, given, await who_answers(role, self.runtime), lane=lane)
        return answered.value, {"responders": [f"{role}: {answered.responder}"]}


InWorld = Callable[[Step], Awaitable[Update]]
"""A step of the graph, run in the task's world if the context names one."""


def timed(node: InWorld, *, is_first: bool = False) -> Callable[..., Awaitable[Update]]:
    """Open the task's world for a step, and add its questions and its duration to its update.

    The first step also reads the task. The time between a kill and the restart does not count.
    """

    @wraps(node)
    async def step(state: State, runtime: LearningRuntime) -> Update:
        began = time.perf_counter()
        with counting() as asked:
            posed = _posed(state) if is_first else {}
            whole = cast(State, {**state, **posed})
            # The first step reads the material as it is now; the later ones must see the same.
            snapshot = "" if is_first else whole.get("snapshot", "")
            world = await open_world(whole, runtime.context, snapshot)
            update = {**posed, **await node(Step(whole, runtime, world, cards_of(runtime)))}
        costs: Update = {"seconds": time.perf_counter() - began, "asked": asked}
        # The first step overwrites the costs of an earlier task on the same thread.
        return update | ({name: Overwrite(value) for name, value in costs.items()} if is_first else costs)

    del step.__wrapped__  # LangGraph reads the arguments from the signature
    return step


begins = partial(timed, is_first=True)
"""Decorator of the first step of a task."""


def _posed(state: State) -> Update:
    """Return task, query and schema: of an example, a chat message, or as given. Raises BadInput."""
    if name := state.get("example"):
        if name not in STORY:
            raise BadInput(f"example: there is none called {name!r}.", f"There are: {', '.join(STORY)}.")
        told = STORY[name]
        # Material and scope of an earlier task on this thread must not reach the example.
        given = {"task": told.description, "query": told.query, "schema_name": told.schema_name}
        return {**given, "material": "", "scope": ""}
    task = said_in(state["messages"]).text if state.get("messages") else state.get("task", "")
    if not isinstance(task, str) or not task.strip():
        raise BadInput("The task is empty.", "Say with `task` what is to be solved, or choose an `example`.")
    told_now = {name: state.get(name, "") for name in ("query", "material", "scope")}
    return {**told_now, "task": task, "schema_name": ""}


MAX_SHORT_CHARS = 300
MAX_LISTED = 3
"""Maximum failure modes of a card that are shown, and dead ends that are not known to apply here."""


def as_shown(card: Card, world: World) -> Known:
    """Return a card in the short form for agents, with its rules instantiated for the task where possible.

    All dead ends that apply here are shown, and a few others.
    """
    # The rules of a deprecated card count as dead ends.
    why, is_out = card.deprecated_because, card.status == "deprecated"
    advice = [advice_of(world, each.condition, each.pattern) for each in (() if is_out else card.rules)]
    advised = [
        DeprecatedApproach(approach=each.pattern, condition=each.condition, reason=why)
        for each in (card.rules if is_out else ())
    ]
    here, others = list[InVain](), list[InVain]()
    for part in (*card.deprecated_approaches, *advised):
        applies = world.applies(part.condition) if part.condition else None
        if applies and part.gained is not None:  # it may suffice where less gain is wanted
            applies = part.gained < world.wanted_gain if world.wanted_gain else None
        shown = InVain(
            approach=part.approach,
            condition=_short(part.condition),
            applies=applies,
            reason=_short(part.reason),
            failed=max(1, len(part.failed_in)),
            gained=part.gained,
        )
        (here if applies else others).append(shown)
    words = [each for each in advice if each.is_text and each.applies is not False]
    fails = card.failure_modes[:MAX_LISTED]
    return Known(
        id=card.id,
        tasks=card.evidence.task_ids,
        claim=card.claim,
        status=card.status,
        confidence=card.confidence,
        successes=card.evidence.success_count,
        failures=card.evidence.failure_count,
        advice=advice,
        example=card.example if words else "",  # other rules are already instantiated for this task
        valid_for=card.valid_for,
        rationale=_short(card.rationale),
        in_vain=here + others[:MAX_LISTED],
        served=[each.features for each in card.evidence.recent if each.success and each.features],
        fails=[Failing(**{name: _short(text) for name, text in each}) for each in fails],
    )


def _short(text: str) -> str:
    return shorten(text, MAX_SHORT_CHARS, placeholder=" …")


def worded(log: Sequence[LoggedObjection]) -> list[str]:
    """Return objections as texts for agents."""
    return [str(each.objection) for each in log]


def with_pattern(draft: Drafted, world: World) -> Drafted:
    """Name a draft's solution in the pattern language if its author did not, or used no valid pattern."""
    if world.language is None:
        return draft
    pattern = known_pattern(world, draft.pattern)
    if not pattern and draft.solution.text:
        pattern = world.describe(draft.solution)
    return draft.model_copy(update={"pattern": pattern})
