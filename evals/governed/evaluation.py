"""Failures of a shared memory, and the cost of preventing them.

The four failures of "Governed Shared Memory for Multi-Agent LLM Systems" (arXiv 2606.24535): a text is shown
to a person without the right to it, an outdated text is shown, old and new are shown together, and a text has
no known origin. Governance may also lose something: a fact that a person may know is not shown.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd
from pydantic import Field

from mneme.evals.governed.memories import GOVERNED_RIVALS, ByPolicy, Memory, Mneme, Shown
from mneme.evals.governed.stories import Event, Fact, story
from mneme.evals.measuring import in_environment, temporary_ledger
from mneme.evals.options import Positive, RunOptions
from mneme.evals.report import Progress, Report, Row, framed
from mneme.models.asking.counting import tokens
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.ledger import Ledger

OUR_MEMORY, BY_HAND, BY_POLICY = "Mneme", "changes wanted, by hand", "changes wanted, always"
"""Our memory; and in stories where the team must learn each change, ours by hand and with a policy."""


class Options(RunOptions):
    """Number and length of the stories."""

    stories: Positive = Field(200, description="Stories, each of four people in two teams.")
    events: Positive = Field(30, description="Events of a story.")


class StoryRun(NamedTuple):
    """One story told to one memory."""

    memory: str
    seed: int


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Tell each story to each memory; an interrupted run is continued."""
    embedder = await options.opened_embedder()
    told = {"stories": options.stories, "events": options.events, "embedder": embedder.name}
    journal = options.journal("governed", told)
    cases = {
        f"{memory}, story {seed}": StoryRun(memory, seed)
        for memory in (OUR_MEMORY, BY_HAND, BY_POLICY, *GOVERNED_RIVALS)
        for seed in range(options.stories)
    }
    with TemporaryDirectory(prefix="mneme-governed-") as home, in_environment({"MNEME_HOME": home}):
        async with temporary_ledger(embedder) as ledger:
            one = partial(_tell, events=options.events, ledger=ledger, embedder=embedder)
            rows = await journal.play(cases, one, progress)
    frame = pd.DataFrame(rows).groupby("memory", sort=False).sum(numeric_only=True)
    shown = _shares(frame)
    return journal.report(
        f"searches with {embedder.name}; no model",
        shown.to_dict("index"),
        [framed("What goes wrong in a shared memory, % of the questions", shown)],
        [
            "leak: a text that who asks has no right to. stale: a value that was changed or forgotten;",
            "built on it: a plan that rests on one. both: old and new together.",
            "missed: it may be known, and is not shown. no origin: right, without a word of who said it.",
            f"{BY_HAND}, and always: ours, where the team is to know each change of what it knows, without",
            "and with a policy; what reads like a password is never shared by one.",
        ],
        rows,
    )


def _shares(sums: pd.DataFrame) -> pd.DataFrame:
    """Return the failures as shares of the questions, and what a question cost."""
    asked = sums["asked"]
    parts = {
        "leak": sums["leaked"] / asked,
        "stale": sums["stale"] / asked,
        "built on it": sums["derived"] / asked,
        "both": sums["both"] / asked,
        "no origin": sums["nameless"] / sums["found"].clip(lower=1),
        "missed": sums["missed"] / sums["known"].clip(lower=1),
    }
    shares = pd.DataFrame({name: 100 * part for name, part in parts.items()}).round(1)
    costs = {"tokens": sums["tokens"] / asked, "ms": sums["us"] / asked / 1000, "questions": asked}
    return shares.assign(**costs).round(1)


async def _tell(case: StoryRun, *, events: int, ledger: Ledger, embedder: Embedder) -> Row:
    """Tell a story to a memory, and count the failures."""
    name = f"story{case.seed}"  # the same story for all; names keep the stories of one ledger apart
    memory: Memory
    if case.memory in GOVERNED_RIVALS:
        memory = GOVERNED_RIVALS[case.memory](name, embedder)
    else:
        memory = (ByPolicy if case.memory == BY_POLICY else Mneme)(f"{case.memory} {name}", ledger)
    counts, facts = Counter[str](), dict[str, Fact]()
    for event in story(case.seed, events, changes_are_shared=case.memory in {BY_HAND, BY_POLICY}):
        facts[event.fact.about] = event.fact  # as the story changes it: the same object
        if event.kind == "ask":
            began = time.perf_counter()
            shown = await memory.ask(event.person, event.text)
            counts["us"] += round(1e6 * (time.perf_counter() - began))
            counts.update(judged(event, shown, facts.values()))
        else:
            act = {"share": memory.share, "forget": memory.forget}.get(event.kind, memory.say)
            await (memory.decide(event.fact, event.text) if event.kind == "decide" else act(event.fact))
    return {"memory": case.memory, "story": case.seed, **counts}


def judged(event: Event, shown: Sequence[Shown], facts: Iterable[Fact]) -> dict[str, int]:
    """Count right and wrong texts among those that a person was shown."""
    said = " ".join(each.text for each in shown)
    fact, person = event.fact, event.person
    # Of all facts, not only of the asked one: any leak counts.
    forbidden = {each for other in facts for each in {*other.values, *other.plans} - other.allowed(person)}
    old = {each for each in fact.values if each != fact.now}
    plans = {plan for plan, value in fact.plans.items() if value != fact.now}
    # A plan quotes the value that it rests on; outliving it is `derived`, not `stale`.
    right, plain = fact.known_to(person), " ".join(each.text for each in shown if "plan" not in each.text)
    is_found = bool(right) and right in said
    owners = [each.origin for each in shown if right and right in each.text]
    return {
        "asked": 1,
        "leaked": any(each in said for each in forbidden),
        "stale": any(each in plain for each in old),
        "derived": any(each in said for each in plans),
        "both": is_found and any(each in said for each in old),
        "known": bool(right),
        "missed": bool(right) and not is_found,
        "found": is_found,
        "nameless": is_found and not any(fact.owner in each for each in owners),
        "tokens": sum(tokens(each.text) for each in shown),
    }
