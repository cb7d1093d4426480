"""Tables 1 and 2 and figure 3 of the MiTa paper, measured in our household world.

Every method plays the same seeded episodes, 20 per cell, and with `--data` the C-WAH episode files of a
folder as well, which have tables of their own. Beside each result stands the oracle's bound; the paper's
figures have a table of their own. Episodes run in parallel, one process per core; with a language model one
after the other, since its server is the bottleneck and the gate that spares it is one per process.

The world is a symbolic one after measured rules, not Unity, and the generated apartments are not C-WAH's:
compare differences between methods, not a cell with the paper's cell. A start that no episode records
(the third agent's) is placed by a seeded rule; the rows and the notes say how many.

The rules were tuned on episodes that were looked at (docs/measurements.md lists their seeds); the default
seeds are others. The ablation of the summary is played at two windows, since the window decides its worth.

A second `--agents` plays figure 3a. Figure 3b wants a weaker model for members or manager: `--weak-model`.
Under `rules` a weaker role is one whose decisions lapse in `LAPSES` of the cases.
"""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.environments.household import Episode, load_episode
from mneme.environments.household.generator import generate
from mneme.evals.household.arms import (
    CATEGORIES,
    COUNTERS,
    LAPSES,
    METHODS,
    NARROW,
    Arm,
    Method,
    Plan,
    table_arms,
)
from mneme.evals.household.playing import Case, finished
from mneme.evals.household.tables import report
from mneme.evals.measuring import processes
from mneme.evals.options import AgentsCompared, Identity, Jobs, JournalOptions, Role, identify, jobs_of
from mneme.evals.report import Progress, Report, Row, file_digest
from mneme.nodes.household.context import Setting

QUICK = 3
"""Episodes per category of a short run."""


class Options(JournalOptions):
    """Episodes, numbers of agents, methods, and responders."""

    episodes: int = Field(20, ge=1, description="Generated episodes of each category.")
    members: list[Annotated[int, Field(ge=1, le=4)]] = Field(
        [1, 2, 3], min_length=1, description="Number of agents.", json_schema_extra={"option": "members"}
    )
    methods: list[Method] = Field(list(METHODS), min_length=1, description="Method of the paper's table 1.")
    agents: AgentsCompared = Field(["auto"])
    manager: Role = ""
    weak_model: str = Field("", description="The weaker model of figure 3b.")
    data: Path | None = Field(None, description="A folder of C-WAH episode files, to play as well.")
    only_data: bool = Field(False, description="Play the files of --data alone, no generated episodes.")
    settings: list[Setting] = Field(
        ["symbolic"],
        min_length=1,
        description="Whether agents are told what is in their room, or see it: tables 1 and 2 of each.",
    )
    seed: int = Field(7000, ge=0, description="The first episode's seed.")
    jobs: Jobs = 0
    quick: bool = Field(False, description="A short run: 3 episodes of each category.")


class Responders(BaseModel):
    """Responder of each role, determined once for the whole run."""

    members: list[Identity]
    manager: Identity
    weak: Identity | None

    @property
    def uses_model(self) -> bool:
        named = [*self.members, self.manager, *([self.weak] if self.weak else [])]
        return any(each.is_model for each in named)

    def __str__(self) -> str:
        if self.manager == self.members[0]:
            return str(self.manager)
        return f"members {self.members[0]}, manager {self.manager}"


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Play the remaining episodes in parallel, and report; an interrupted run is continued."""
    responders = await _responders(options)
    plans = [_plan(options, responders, setting) for setting in sorted({*options.settings})]
    files = {path.name: file_digest(path) for path in _files(options.data)} if options.data else {}
    configuration = {"responders": responders.model_dump(), "files": files, "lapses": LAPSES}
    # more episodes, arms or sizes join the same journal
    journal = options.journal("household", configuration | {"counted": COUNTERS})
    jobs = jobs_of(options.jobs, responders.uses_model)
    episodes = await asyncio.to_thread(lambda: {size: _episodes(options, size) for size in options.members})
    runs = journal.path.with_suffix("")
    # A bound depends on the episode alone: each is computed once, for all arms.
    bounds = [Case(None, episode) for each in episodes.values() for episode in each]
    with processes(jobs, finished) as one:
        play = partial(journal.play, one=one, progress=progress, concurrency=jobs)
        await play({case.key: case for case in bounds})
        least = {each.key: journal[each.key]["bound"] for each in bounds}
        cases = [
            Case(arm, each, runs, least[Case(None, each).key])
            for plan in plans
            for arm in plan.every
            for each in episodes[arm.agents]
        ]
        rows = await play({case.key: case for case in cases})
    return report(rows, plans, journal, str(responders))


async def _responders(options: Options) -> Responders:
    members = [await identify(model) for model in options.agents]
    manager = await identify(options.manager) if options.manager else members[0]
    weak = await identify(options.weak_model) if options.weak_model else None
    return Responders(members=members, manager=manager, weak=weak)


def _plan(options: Options, responders: Responders, setting: Setting) -> Plan:
    arms = table_arms(
        options.members, options.methods, responders.members[0].responder, responders.manager.responder
    )
    if setting == "visual":  # the paper has tables 1 and 2 of it
        return Plan([replace(arm, setting="visual") for arm in arms], [], [])
    mita = [arm for arm in arms if arm.name == "MiTa"]
    models = [
        replace(arm, member=each.responder, manager=each.responder)
        for each in responders.members[1:]
        for arm in mita
    ]
    narrow = [replace(arm, window=NARROW) for arm in arms if arm.name == "w/o summary"]
    # The whole first, then the same without the summary (`Plan.compared`).
    narrow = [replace(arm, summary=True) for arm in narrow] + narrow
    weaker = list[Arm]()  # figure 3b
    for roles in ((), ("member",), ("manager",), ("member", "manager")):
        lapsing: Row = {f"{role}_lapses": LAPSES for role in roles}
        less = dict.fromkeys(roles, responders.weak.responder) if responders.weak else lapsing
        weaker += [replace(arm, **less) for arm in mita[-1:]]
    return Plan(arms, mita + models, weaker, narrow)


def _episodes(options: Options, agents: int) -> list[Episode]:
    """Return the episodes; the same ones whatever the number of agents."""
    if options.only_data and options.data is None:
        raise BadInput("--only-data: there is no --data.", "Name a folder of C-WAH episodes with --data.")
    files = [] if options.data is None else _files(options.data)
    loaded = [load_episode(path, agents, options.seed + number) for number, path in enumerate(files)]
    if options.only_data:
        return loaded
    count = min(options.episodes, QUICK) if options.quick else options.episodes
    return loaded + [
        generate(seed, category, agents)
        for category in CATEGORIES
        for seed in range(options.seed, options.seed + count)
    ]


def _files(folder: Path) -> list[Path]:
    """Return a folder's episode files. Raises BadInput if it has none."""
    found = sorted(folder.glob("*.json")) if folder.is_dir() else [folder]
    if found and all(path.is_file() for path in found):
        return found
    raise BadInput(f"--data {folder}: no episode files (*.json) there.", "Name a folder of C-WAH episodes.")
