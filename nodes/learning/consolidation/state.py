"""Input, state and result of a consolidation."""

import hashlib
from operator import add
from pathlib import Path
from typing import Annotated, Any, Required

from langgraph.runtime import Runtime
from pydantic import Field
from typing_extensions import TypedDict

from mneme.core.settings import read_settings
from mneme.environments.fields import described
from mneme.models.tuning.judging import Judged
from mneme.models.tuning.pairs import Pairs, Recipe
from mneme.nodes.context import OwnedByTeam, ledger_of, team_of
from mneme.nodes.workflow import Plain, Typed
from mneme.stores.cards.card import Consolidation
from mneme.stores.cards.consolidation import ConsolidationCycle
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.pools.tuned import PoolModels


class TuningContext(Recipe, OwnedByTeam):
    """Context of a consolidation: the team or the pool, and how the model is tuned."""

    pool: str = described(
        "The pool whose memories are learned (Memory Sharing, §5); none: the team's cards.",
        "literary_creation",
    )
    above: int = Field(70, ge=0, le=99, description="A memory is learned where its score is above this.")
    recall: int = Field(5, ge=1, le=20, description="Cards or examples that a task is shown.")
    successes: int = Field(3, ge=1, description="Successes that a card needs to be trained on (§8, step 1).")


TUNED = described(
    "The model that is tuned: a GGUF file, a folder of safetensors, or smollm2.", "smollm2", ...
)


class Wanted(TypedDict, total=False):
    """The base model that is tuned, and where it is served."""

    base: Required[Annotated[str, TUNED]]
    served_base: Required[
        Annotated[str, described("The same model in Ollama, by its name there.", "smollm2", ...)]
    ]
    force: Annotated[bool, described("Consolidate though nothing makes it due.", True, False)]
    generic: Annotated[
        str,
        described(
            "A YAML file of generic questions, in place of those that come with Mneme.",
            "/home/ada/generic.yaml",
        ),
    ]


class Result(TypedDict, total=False):
    """The result: the version's tag, whether it serves, the reason, and all figures."""

    tag: str
    promoted: bool
    why: str
    due: list[str]
    figures: Annotated[dict[str, Any], Plain]


class State(Wanted, Result, total=False):
    """The results of the steps so far."""

    counts: dict[str, int]
    before: Annotated[Judged, Typed]
    trained: Annotated[dict[str, Any], Plain]
    after: Annotated[Judged, Typed]
    model: str
    replayed: Annotated[list[dict[str, Any]], add]


class Replaying(TypedDict):
    """One task to be replayed, and the arm that answers it."""

    tag: str
    number: int
    arm: str
    served_base: str
    model: str


Update = dict[str, Any]
TuningRuntime = Runtime[TuningContext]


class Consolidating:
    """The subject of a consolidation: the cards of the run's team, or the pool that its context names."""

    def __init__(self, runtime: TuningRuntime) -> None:
        self.context, self.tell = runtime.context, runtime.stream_writer
        ledger, self._team = ledger_of(runtime), team_of(runtime)
        self.limits = Consolidation(successes=self.context.successes)
        self.cards = KnowledgeCards(ledger, self._team)
        self.of_cards = ConsolidationCycle(ledger, self.cards, self.limits)
        self.pool = MemoryPool(ledger, self._team, self.context.pool) if self.context.pool else None

    @property
    def cycle(self) -> ConsolidationCycle | PoolModels:
        """Return the store of consolidations: of the pool, or of the team's cards."""
        return PoolModels(self.pool) if self.pool else self.of_cards

    def owner(self, between: str = "-") -> str:
        """Return the name of the team, followed by the pool's name if there is one."""
        return between.join(filter(None, [self._team, self.context.pool]))

    async def folder(self, tag: str) -> Path:
        """Return the folder of one version, with its pairs, its training and its adapter."""
        home = (await read_settings()).home
        named = hashlib.sha256(self.owner("\n").encode()).hexdigest()[:16]  # the name may be no file name
        return home / "consolidations" / named / tag


def read_pairs(folder: Path) -> Pairs:
    """Read the gathered pairs. Blocks."""
    return Pairs.model_validate_json((folder / "pairs.json").read_text(encoding="utf-8"))
