"""Tables 1 and 2 and figure 4 of the Memory Sharing paper (§4), and its retriever beside others.

Nine agents in three domains answer with zero to three examples from a pool for each domain, and from one pool
for all; the pools grow by what the agents write to new questions, in five parts. An answer is compared with
the standard answer by BERTScore and ROUGE-L. Everything runs through the graphs `memory_sharing` and
`retriever_training`.

Several `--agents` are the paper's backbones, each an arm of its own under one fixed scorer.

Deviations from the paper: the items are the shipped ones, 24 an agent, or the user's, since the authors' have
no licence; the BERTScore encoder is a local one, so that its figures cannot be compared with the paper's
directly; the split, like everything drawn, is repeated with several seeds. Beyond the paper the pools grow a
second time by standard answers, and the ways to choose examples are compared.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, get_args

from pydantic import Field

from mneme.evals.measuring import home_beside, in_environment, ledger_at
from mneme.evals.options import AgentsCompared, Identity, identify
from mneme.evals.report import Journal, Progress, Report, Row, digest, together
from mneme.evals.sharing.data import Item, Split, SplitOptions, read_items, split
from mneme.evals.sharing.pool_runs import Growth, PoolRun, pools_of, steps
from mneme.evals.sharing.scores import LAYERS, BertScore, score_all, with_scores
from mneme.evals.sharing.tables import (
    ALL_AGENTS,
    SCORE_MEASURES,
    STAGE,
    Results,
    memories,
    plots,
    tables_of,
    tables_of_arms,
    ways,
)
from mneme.library.agents.agent import AGENTS
from mneme.models.retriever.retriever import Learning
from mneme.nodes.sharing.context import Scoring, SharingContext, Stored
from mneme.stores.pools.thresholds import DEFAULT_THRESHOLD

QUICK_ITEMS = 10
"""Number of items of each agent in a short run."""
CONCURRENT_POOLS = 3
"""Number of pools that are processed at the same time."""
MAX_UNREADABLE_SHARE = 0.2
"""Share of unknown tokens above which an agent's BERTScore is reported as unreliable."""
SETTINGS = ("scorer", "threshold", "learning", "scoring", "stored", "candidates", "labels")
"""Options that change the experiment."""

SHARING_FIELDS: Any = SharingContext.model_fields


class Options(SplitOptions):
    """Responders, and the encoder of BERTScore."""

    agents: AgentsCompared = Field(["auto"])
    scorer: str = Field(
        "", description="Who scores, whoever answers, as the paper's one scorer does; default: --agents."
    )
    threshold: int = Field(
        DEFAULT_THRESHOLD, ge=0, le=99, description="A pair is stored where its score is above this."
    )
    scoring: Scoring = SHARING_FIELDS["scoring"]
    stored: Stored = SHARING_FIELDS["stored"]
    candidates: int = SHARING_FIELDS["candidates"]
    labels: int = SHARING_FIELDS["labels"]
    learning: Learning = SHARING_FIELDS["learning"]
    encoder: Path | None = Field(None, description="Folder of BERTScore's encoder; default: the bundled one.")
    layers: int = Field(LAYERS, ge=1, description="The encoder's layer whose vectors are compared.")
    jobs: int = Field(8, ge=1, le=64, description="Test questions that are asked at once.")
    quick: bool = Field(False, description="A short run: one seed, ten items an agent.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run every seed's pools and score the answers; an interrupted run is continued."""
    seeds = options.seeds[:1] if options.quick else options.seeds
    items = await asyncio.to_thread(read_items, options.data)
    if options.quick:
        agents = dict.fromkeys(item.agent for item in items)
        own = ([item for item in items if item.agent == agent] for agent in agents)
        items = [item for each in own for item in each[:QUICK_ITEMS]]
    splits = {seed: await asyncio.to_thread(split, items, seed) for seed in seeds}
    bert = await asyncio.to_thread(BertScore, options.encoder, options.layers)
    embedder = await options.opened_embedder()
    who = await identify(options.agents[0])
    arms = arms_of(options, who)
    configuration = {
        "items": digest({item.id: item.model_dump() for item in items}),
        "agents": who.model_dump(),
        **{name: getattr(options, name) for name in SETTINGS},
        "arms": [(await identify(each)).model_dump() for each in options.agents[1:]],
        "encoder": f"{bert.name}, layer {bert.layers}",
        "embedder": embedder.name,
    }
    journal = options.journal("memory_sharing", configuration)
    home = home_beside(journal)
    # the retrievers' files stay with the run: they belong to no pool of the user's
    with in_environment({"MNEME_HOME": str(home.resolve())}):
        async with ledger_at(home / "ledger", embedder) as ledger:
            gate = asyncio.Semaphore(options.jobs)
            made = partial(PoolRun, ledger=ledger, journal=journal, gate=gate)
            await _run(splits, arms, made, progress)
    await asyncio.to_thread(score_all, journal, bert, progress)
    rows = with_scores(journal)
    results = {arm: Results(rows, seeds, arm) for arm in arms}
    return _report(journal, results, who, _notes(items, bert))


def arms_of(options: Options, who: Identity) -> dict[str, SharingContext]:
    """Return the responders of each arm: one model for all agents, and one scorer beside all."""
    scorer = options.scorer or who.responder
    given = options.model_dump(include={*SharingContext.model_fields} - {"agent", "pools"})
    given |= {"scorer": scorer, "grader": scorer}  # one judge for all arms
    several = len(options.agents) > 1
    people = {name: name for name in options.agents} if several else {"": who.responder}
    return {arm: SharingContext(**given | {"answerer": each}) for arm, each in people.items()}


async def _run(
    splits: dict[int, Split],
    arms: dict[str, SharingContext],
    made: Callable[..., PoolRun],
    progress: Progress,
) -> None:
    """Run the pools side by side: each is its own, and within one the order is fixed."""
    total, done = len(arms) * sum(steps(each) for each in splits.values()), count(1)
    # Within a pool the order is fixed: other pools keep the server busy.
    beside = asyncio.Semaphore(CONCURRENT_POOLS)

    async def go(pool_run: PoolRun) -> None:
        async with beside:
            await pool_run.run()

    def report(what: str) -> None:
        progress(next(done), total, what)

    await together(
        go(made(seed, pools, growth, pool, own, roles=roles, report=report, arm=arm))
        for arm, roles in arms.items()
        for seed, items in splits.items()
        for growth in get_args(Growth)
        for pools, pool, own in pools_of(items)
    )


def _notes(items: Sequence[Item], bert: BertScore) -> list[str]:
    """Describe what compared the answers, and for which agents it cannot distinguish them."""
    answers = {agent: [each.answer for each in items if each.agent == agent] for agent in AGENTS}
    shares = {agent: bert.unknown(own) for agent, own in answers.items() if own}
    return [
        f"{len(items)} items; BERTScore by {bert.name}, layer {bert.layers}, F1, not rescaled.",
        *(
            f"{agent}: the encoder does not know {share:.0%} of the tokens: see ROUGE-L, or give --encoder."
            for agent, share in shares.items()
            if share > MAX_UNREADABLE_SHARE
        ),
    ]


def _report(journal: Journal, arms: dict[str, Results], who: Identity, notes: list[str]) -> Report:
    first = next(iter(arms))
    summary, tables = _summary(arms[first]), tables_of(arms[first])
    for each in tables if first else []:
        each.title += f" ({first})"
    over = f"mean over {len(arms[first].seeds)} seeds{first and f', {first}'}; dashed: standard answers"
    return journal.report(
        ", ".join(arms) if first else who,
        summary | ({"arms": {k: _summary(v) for k, v in arms.items()}} if first else {}),
        [*tables_of_arms(arms), *tables],
        notes,
    ).with_plots(f"Figure 4: domain pools, three shots; {over}", *plots(arms[first]))


def _summary(results: Results) -> Row:
    """Return all figures: by measure, pools, growth, stage, shots and agent."""
    stages = {"/".join(map(str, stage)): found for stage, found in results.answers.groupby(STAGE, sort=False)}
    agents = [*results.agents, ALL_AGENTS]
    return {
        "seeds": results.seeds,
        **{
            measure: {
                stage: {agent: results.spread(found, agent, measure) for agent in agents}
                for stage, found in stages.items()
            }
            for measure in SCORE_MEASURES
        },
        "memories": {growth: memories(results, growth, 100) for growth in get_args(Growth)},
        "retriever": {growth: ways(results, growth) for growth in get_args(Growth)},
    }
