"""What the tests of tuning a model share: a consolidation, and a training that is killed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from mneme.graphs.consolidation import builder
from mneme.models.tuning.lora import Training
from mneme.nodes.learning.consolidation.state import TuningContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger

FEW: dict[str, Any] = {"epochs": 1, "rank": 2, "rate": 1e-4, "longest": 256, "batch": 8}


class Killed(BaseException):
    """A process that is gone."""


def killed_after(steps: int) -> Callable[..., Any]:
    """Return a step of a training that dies after so many."""
    step, left = Training._step, [steps]

    def dying(self: Training, *given: Any) -> float:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return step(self, *given)

    return dying


def wanted(folder: Path, **more: Any) -> Any:
    """Return what a consolidation of the tiny Llama in a folder is asked for."""
    facts = str(folder / "generic.yaml")
    return {"base": str(folder), "served_base": "tiny", "force": True, "generic": facts} | more


async def consolidate(ledger: Ledger, given: Any, saver: InMemorySaver | None = None, **more: Any) -> Any:
    """Run a consolidation, or go on with one where nothing is given."""
    graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "consolidate"}}
    return await graph.ainvoke(given, config, context=TuningContext(**{**FEW, **more}))
