"""Information survival: after k turns, is a fact in the next context, and is the answer right?

A planning world that shows its whole state at every step cannot tell memories apart: with and without
intrinsic memory rules make the same moves (`mneme eval pddl` counts them). Here facts are said once, by the
one who alone knows them (hidden profiles, and a storehouse whose crates are opened once), and are followed by
talk of other things. Then the next speaker is asked, and the writer who reads what all agents remember.
Whether a fact is in a context is looked up by the program; the answerer is not asked for it.

What is measured is what survives, and nothing about planning. The paper has no such table.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from mneme.core.errors import BadAnswer, BadInput
from mneme.core.settings import settings
from mneme.evals.answering import identify
from mneme.evals.discussion import hidden_profiles, storehouse
from mneme.evals.discussion.divergence import kept_apart
from mneme.evals.discussion.from_context import Shown, answer_from_context
from mneme.evals.discussion.puzzle import Puzzle, Question
from mneme.evals.discussion.survival_memories import (
    ALL_MEMORIES,
    ARMS,
    Arm,
    Bounds,
    Remembered,
    View,
    remember,
)
from mneme.evals.discussion.survival_tables import report
from mneme.evals.measuring import temporary_ledger
from mneme.evals.options import RUNS, AgentsCompared, EmbedderName, Fresh, NotNegative, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal
from mneme.models.asking.asking import ask
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.models.ollama.tokenizers import counter_of
from mneme.nodes.task_memories.f_context import Window

Kind = Literal["hidden_profile", "storehouse"]
Template = Literal["aligned", "one_list", "prose"]
DRAWN = {"hidden_profile": hidden_profiles.hidden_profile, "storehouse": storehouse.storehouse}
TEMPLATES: dict[str, dict[str, Any] | None] = {
    "aligned": None,
    "one_list": {"notes": ["What matters, one thing each"]},
    "prose": {"notes": "What matters, in a few sentences"},
}
"""`aligned` has the slots of the puzzle's own roles, as the paper's templates have those of theirs."""
ALWAYS = ("intrinsic", "newest turns")
"""Memories that are always looked at, since the others are compared with them."""
MOST_ROLES = min(hidden_profiles.MOST_ROLES, storehouse.MOST_ROLES)


class Options(BaseModel):
    """Which puzzles, how long, in what room, and who remembers and answers: lists make a grid."""

    kinds: list[Kind] = Field(["hidden_profile", "storehouse"], min_length=1, description="The puzzles.")
    roles: list[Positive] = Field([4], min_length=1, description=f"Numbers of agents, 2 to {MOST_ROLES}.")
    templates: list[Template] = Field(["aligned"], min_length=1, description="Memory templates.")
    agents: AgentsCompared = ["auto"]
    memories: list[Arm] = Field(list(ARMS), min_length=1, description="The memories that are compared.")
    turns: list[Positive] = Field([16, 32, 64], min_length=1, description="Turns after which is asked.")
    seeds: list[NotNegative] = Field(list(range(1, 11)), min_length=1, description="Puzzles of each kind.")
    context_tokens: int = Field(1000, ge=600, description="Tokens of task, memory and turns, for every arm.")
    memory_tokens: int = Field(400, ge=100, description="Tokens of a memory.")
    questions: int = Field(2, ge=1, description="Questions of a storehouse that are asked.")
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False

    def check(self) -> None:
        """Raise BadInput for what no puzzle can be drawn with."""
        if wrong := [each for each in self.roles if not 2 <= each <= MOST_ROLES]:
            raise BadInput(f"--role {wrong[0]}: there are 2 to {MOST_ROLES} agents.")
        if min(self.turns) < (least := storehouse.ROUNDS * max(self.roles)):
            raise BadInput(f"--turn {min(self.turns)}: facts are said until turn {least}; ask after them.")


class Asked(NamedTuple):
    """Which questions are put, and to whom."""

    who: str
    questions: Sequence[Question]


class Case(BaseModel):
    """One puzzle as one kind of memory meets it."""

    model: str
    kind: Kind
    roles: int
    template: Template
    seed: int

    @property
    def name(self) -> str:
        return f"{self.model}/{self.kind}/{self.roles}/{self.template}/{self.seed}"

    def puzzle(self, turns: int) -> Puzzle:
        """Return the puzzle, drawn by its seed."""
        return DRAWN[self.kind](self.seed, self.roles, turns, TEMPLATES[self.template])


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Hold every puzzle against every memory; go on where an interrupted run stopped."""
    options.check()
    models = {model: await identify(model) for model in options.agents}
    embedder = await open_embedder(options.embedder or settings().embedder)
    journal = _journal(options, models.values(), embedder)
    grid = product(options.agents, options.kinds, options.roles, options.templates, options.seeds)
    cases = [
        Case(model=models[model].responder, kind=kind, roles=roles, template=template, seed=seed)
        for model, kind, roles, template, seed in grid
    ]
    for done, case in enumerate(cases, start=1):
        if case.name not in journal:
            journal.add(case.name, case.model_dump() | await _measured(case, options, embedder))
        progress(done, len(cases), case.name)
    rows = [journal[case.name] for case in cases]
    return report(rows, [*models.values()], options.context_tokens, options.memory_tokens, journal.path)


def _journal(options: Options, models: Any, embedder: Embedder) -> Journal:
    configuration = {
        "models": [each.model_dump() for each in models],
        "turns": options.turns,
        "room": [options.context_tokens, options.memory_tokens, options.questions],
        "memories": options.memories,
        "embedder": embedder.name,
    }
    return open_journal(options.out, "information_survival", configuration, fresh=options.fresh)


async def _measured(case: Case, options: Options, embedder: Embedder) -> Row:
    puzzle = case.puzzle(max(options.turns))
    count = await counter_of(case.model)
    arms = [arm for arm in ARMS if arm in {*options.memories, *ALWAYS}]
    bounds = Bounds(options.context_tokens, options.memory_tokens, count, case.model, arms)
    async with temporary_ledger(embedder) as ledger:
        kept = await remember(puzzle, options.turns, bounds, ledger)
    asked = Asked(case.model, puzzle.questions[: options.questions])
    looks = [
        await _look(puzzle, reader, turn, window, asked)
        for turn in options.turns
        for reader, window in _windows(puzzle, turn, kept, bounds)
    ]
    found = {turn: await kept_apart(puzzle, kept, turn, embedder) for turn in options.turns}
    return {
        "looks": looks,
        "apart": [{"turn": turn} | each._asdict() for turn, each in found.items()],
        "costs": kept.costs,
        "complaints": kept.complaints,
        "memories": kept.own[max(options.turns)],
        "summary": kept.summary.get(max(options.turns), ""),
    }


def _windows(puzzle: Puzzle, turn: int, kept: Remembered, bounds: Bounds) -> Iterator[tuple[str, Window]]:
    """Yield what the next speaker is shown with each memory, and what the reader of all memories is shown."""
    view = View(puzzle, turn, kept, bounds)
    yield ALL_MEMORIES, view.of_writer()
    yield from ((arm, view.of(arm, puzzle.next_speaker(turn))) for arm in bounds.arms)


async def _look(puzzle: Puzzle, reader: str, turn: int, window: Window, asked: Asked) -> Row:
    """Look up which facts a context holds, the reader's own and those of the others, and ask."""
    said = "\n".join([window.memory, *window.turns])
    stands = [fact.stands_in(said) for fact in puzzle.facts]
    speaker = "" if reader == ALL_MEMORIES else puzzle.next_speaker(turn)
    own = [there for fact, there in zip(puzzle.facts, stands, strict=True) if fact.owner == speaker]
    others = [there for fact, there in zip(puzzle.facts, stands, strict=True) if fact.owner != speaker]
    return {
        "turn": turn,
        "arm": reader,
        "own": fmean(own) if own else None,
        "others": fmean(others) if others else None,
        "facts": stands,
        "tokens": window.tokens,
        "turns_shown": len(window.turns),
        "answers": [await _answered(window, stands, each, asked.who) for each in asked.questions],
    }


async def _answered(window: Window, stands: Sequence[bool], question: Question, who: str) -> Row:
    """Ask; say whether all that the answer needs was shown, and whether the answer is right."""
    given = Shown(
        task=window.task,
        memory=window.memory,
        turns="\n".join(window.turns),
        question=question.text,
        options=list(question.options),
    )
    there = all(stands[at] for at in question.needs)
    try:
        option = (await ask(answer_from_context, given, who, lane="background")).value.option
    except BadAnswer as bad:
        return {"there": there, "verdict": "unusable", "option": None, "raw": bad.raw}
    verdict = "right" if option == question.answer else "abstained" if option < 0 else "wrong"
    return {"there": there, "verdict": verdict, "option": option}
