"""The pool, the rubric and the retriever of a run of Memory Sharing.

The scores of answers after a retriever's examples are watched: if they fall, its parent serves again.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mneme.core.errors import BadInput, LedgerMismatch, MnemeError
from mneme.core.settings import read_settings
from mneme.core.yaml_files import read_yaml
from mneme.library.agents.agent import AGENTS, Agent, load_agent
from mneme.library.agents.rubric import RUBRICS, SINGLE_POOL, Rubric, load_rubric
from mneme.nodes.context import ledger_of, team_of
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.live_scores import LiveScores, is_worse
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.pools.retrievers import UNTRAINED, Retrievers
from mneme.stores.pools.rubrics import Rubrics, RubricVersion
from mneme.stores.pools.thresholds import DEFAULT_THRESHOLD, Thresholds, checksum, key_of
from mneme.stores.pools.tuned import PoolModels

if TYPE_CHECKING:  # slow to import
    from langgraph.runtime import Runtime

    from mneme.models.retriever.retriever import QueryEncoder
    from mneme.nodes.sharing.context import Pools, Sharing

MAX_HELD_RETRIEVERS = 4
"""Maximum trained query encoders that a process keeps loaded."""
FrozenRubric = RubricVersion[Rubric]
SHIPPED_RUBRICS = {name: load_rubric(name) for name in RUBRICS}


def agent_of(named: str) -> Agent:
    """Return a shipped agent, or the one that a YAML text describes.

    Raises BadInput for an unknown name, and for a text that describes no agent.
    """
    # Never a file of this machine, since the name may come from a server's client.
    if "\n" in named.strip() or ":" in named:
        return read_yaml(named, Agent, "The agent")
    if (name := named.strip()) not in AGENTS:
        raise BadInput(
            f'There is no agent "{name}".', f"Agents: {', '.join(AGENTS)}; or give an agent's YAML text."
        )
    return load_agent(name)


def agents_in(texts: str) -> list[Agent]:
    """Return the agents that a YAML text describes, a document each. Raises BadInput."""
    found = [agent_of(each) for each in re.split(r"^---\s*$", texts, flags=re.MULTILINE) if each.strip()]
    return list({each.name: each for each in found}.values())


def rubrics_of(ledger: Ledger, team: str) -> Rubrics[Rubric]:
    """Return the rubrics by which a team's pairs are scored: its own, and the shipped ones."""
    return Rubrics(ledger, team, FrozenRubric, SHIPPED_RUBRICS)


async def rubric_of(runtime: "Runtime[Pools]", domain: str) -> FrozenRubric:
    """Return the rubric that scores a domain's pairs: the team's own, else the shipped one.

    Raises BadInput where there is neither.
    """
    name = domain if runtime.context.pools == "domain" else SINGLE_POOL
    return await rubrics_of(ledger_of(runtime), team_of(runtime)).latest(name)


async def threshold_of(runtime: "Runtime[Sharing]", domain: str, scorer: str) -> tuple[int, str]:
    """Return the threshold for keeping pairs, and a text that says whether its calibration is valid.

    A threshold in the context takes precedence.
    """
    context = runtime.context
    if context.threshold is not None:
        return context.threshold, ""
    frozen = await rubric_of(runtime, domain)
    key = key_of(frozen.rubric.name, scorer, context.scoring)
    found = await Thresholds(ledger_of(runtime), team_of(runtime)).find(key)
    if found is None:
        return DEFAULT_THRESHOLD, ""
    said = f"The threshold {found.threshold}, calibrated for {scorer},"
    if found.rubric == checksum(frozen.rubric):
        return found.threshold, f"{said} is used."
    again = f"`mneme share rubric calibrate {frozen.rubric.name}`"
    return DEFAULT_THRESHOLD, f"{said} is void, since the rubric changed; calibrate anew: {again}"


def pool_of(runtime: "Runtime[Pools]", domain: str) -> MemoryPool:
    """Return the pool of a domain, or the single pool of all domains, as the context says."""
    return pool_named(runtime, domain if runtime.context.pools == "domain" else SINGLE_POOL)


def pool_named(runtime: "Runtime[Pools]", name: str) -> MemoryPool:
    """Return a pool of the run's team."""
    return MemoryPool(ledger_of(runtime), team_of(runtime), name)


async def who_answers(pool: MemoryPool, who: str) -> str:
    """Return the model that answers; for `auto` the one tuned on the pool, if one was promoted (§5)."""
    if who.strip() != "auto" or (await read_settings()).auto:
        return who
    return await PoolModels(pool).serving() or who


async def retrievers_of(pool: MemoryPool) -> Retrievers:
    """Return a pool's retrievers; their files are in the home folder."""
    return Retrievers(pool, (await read_settings()).home / "retrievers")


class LookUp(NamedTuple):
    """The inputs of a search: the retriever's number, the question's vector, score adjustments by agent."""

    number: int = UNTRAINED
    vector: list[float] | None = None
    favours: Mapping[str, float] = {}


async def look_up(pool: MemoryPool, question: str) -> LookUp:
    """Return a question's inputs for a search, from the retriever that serves the pool.

    If the embedder is absent, no retriever serves and there is no vector. Raises StorageFailure if the
    retriever's file is missing or damaged; the hint names the command that helps.
    """
    embedded = await pool.ledger.vector_of(question)
    if embedded is None:
        return LookUp()
    retrievers = await retrievers_of(pool)
    number = await retrievers.serving()
    if number == UNTRAINED:
        return LookUp(number, list(embedded))
    encoder = await opened(pool, retrievers, number)
    import numpy as np  # noqa: PLC0415  (slow to import)

    given = np.array([embedded], dtype=np.float32)
    found = await asyncio.to_thread(encoder.vectors, [question], given)
    (favours,) = await asyncio.to_thread(encoder.favours, [question], given)
    return LookUp(number, [float(each) for each in found[0]], favours)


async def opened(pool: MemoryPool, retrievers: Retrievers, number: int) -> "QueryEncoder":
    """Return the query encoder of a trained version, loaded once and cached while it is in use."""
    version, info = await retrievers.get(number), await pool.ledger.info()
    if version.embedder != info.embedder:
        raise LedgerMismatch(
            f"Retriever {number} of the pool {pool.pool} was trained on {version.embedder}, and the ledger "
            f"is embedded by {info.embedder}.",
            "`mneme share retriever rollback --to-version 0` returns to the untrained embedder; train anew.",
        )
    if (encoder := _held.pop(version.weights, None)) is None:
        from mneme.models.retriever.opening import query_encoder  # noqa: PLC0415  (NumPy is slow to import)

        kind = (version.learning, info.embedder, info.dimension)
        encoder = await asyncio.to_thread(query_encoder, *kind, await retrievers.weights(number))
    _held[version.weights] = encoder  # moved to the end: dropped last
    for longest_unused in [*_held][:-MAX_HELD_RETRIEVERS]:
        _held.pop(longest_unused, None)
    return encoder


_held: "dict[str, QueryEncoder]" = {}


async def watch(pool: MemoryPool, retriever: int, score: int) -> str:
    """Count a score for the version that chose the examples; return a message if a rollback was due.

    The serving version is compared with its parent. If the rollback fails, the version continues to serve.
    """
    live, retrievers = LiveScores(pool), await retrievers_of(pool)
    await live.add(retriever, score, change=Change(reason="A live score.", actor="scorer"))
    # An answer may have begun under a version that no longer serves: there is nothing to roll back.
    if retriever == UNTRAINED or await retrievers.serving() != retriever:
        return ""
    parent = (await retrievers.get(retriever)).parent
    now, before = await live.of(retriever), await live.of(parent)
    if not is_worse(now, before):
        return ""
    told = (
        f"Retriever {retriever} was rolled back to {parent}: {now.mean:.0f} of 100 in {now.count} answers, "
        f"{before.mean:.0f} in {before.count} before."
    )
    try:
        await retrievers.roll_back(parent, change=Change(reason=told, actor="live scores"))
    except MnemeError as failure:  # another process was first, or the parent's file is gone
        return f"Retriever {retriever} is worse than {parent}, and could not be rolled back: {failure}"
    return told
