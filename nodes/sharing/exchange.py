"""One exchange of Memory Sharing (§3.1, §3.2): find examples, answer, score the pair, keep it if it is good.

The agents that are asked one by one and those that learn from one another do the same here.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, BadInput, MnemeError, PromptTooLong
from mneme.library.agents.agent import Agent
from mneme.library.agents.forms import check_form
from mneme.library.agents.rubric import Rubric, printed
from mneme.models.asking.asking import Answered, Lane, ask
from mneme.nodes.sharing.choosing import chosen
from mneme.nodes.sharing.context import ScoredContext, Sharing
from mneme.nodes.sharing.pools import FrozenRubric, threshold_of, watch
from mneme.nodes.sharing.training_wake import wake_training
from mneme.prompts.sharing.answering import AskedQuestion
from mneme.prompts.sharing.answering import answer as answer_question
from mneme.prompts.sharing.examples import Criteria, Example, turns_with
from mneme.prompts.sharing.scoring import Fault, Gradeable, Judgeable, score_pair, score_whole
from mneme.stores.ledger.records import Change, Source
from mneme.stores.pools.lessons import keep
from mneme.stores.pools.memory_pool import MAX_PAIR_CHARS, MemoryPool, Pair, Pooled, asked
from mneme.stores.provenance import made_from
from mneme.stores.write_gate import copies, near

WHOLE_SCORE = "whole"
"""The name of the only entry in `points` with the printed scoring."""
COMPOSED = "| Now, based on these question and answer, what is the answer of question:"
"""The text before the question, as A.2 prints it; its bar follows the bar that ends the last example."""


@dataclass(frozen=True)
class Exchange:
    """A question to an agent, after earlier turns; `prompt`, if set, is stored in the question's place."""

    agent: Agent
    question: str
    leading: Sequence[str] = ()
    rubric: Rubric | None = None
    prompt: str = ""
    shared: Sequence[str] = ()
    """Other workflows' memories about the question, as the agent is shown them."""

    @property
    def kept(self) -> str:
        """The prompt that is scored and stored with the answer."""
        return self.prompt or self.question


class PairScores(TypedDict):
    """The scores of a pair, as plain values that a checkpoint holds.

    `score` is of 100, or None if the pair could not be scored, for the reason in `rationale`. `points` has
    the points by criterion, `most` their maximum for this agent, as some criteria may not apply. `rubric` is
    the version of the rubric.
    """

    score: int | None
    points: dict[str, int]
    most: int
    rationale: str
    faults: list[str]
    scored_by: str
    rubric: int


class WrittenAnswer(TypedDict):
    """An answer, its author, its examples' answers, and the retriever that chose the examples."""

    text: str
    by: str
    seen: list[str]
    retriever: int
    shared: NotRequired[list[str]]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a scored pair."""

    why: str = ""
    """The reason why it is not good; empty if it is."""
    is_new: bool = False
    key: str = ""
    rolled_back: str = ""
    unwoken: str = ""
    basis: str = ""
    """The basis of the threshold, if one was calibrated."""

    @property
    def is_good(self) -> bool:
        return not self.why


async def examples_for(
    pool: MemoryPool, exchange: Exchange, context: ScoredContext, without: str = ""
) -> tuple[int, list[Pooled]]:
    """Return the retriever's number and the memories that it finds, most similar first (§3.2).

    No two are nearly the same, and none is the answer `without`.
    """
    if context.shots == 0:
        return 0, []
    return await chosen(pool, asked(exchange.question, exchange.leading), context.shots, without=without)


async def answer(
    exchange: Exchange, examples: Sequence[Pooled], who: str, lane: Lane = "user"
) -> tuple[Answered[str], list[Pooled]]:
    """Answer a question after its examples; return also the examples shown, fewer if not all fit."""
    shown = list(examples)
    while True:
        try:
            return await ask(answer_question, question_of(exchange, shown), who, lane=lane), shown
        except PromptTooLong:
            if not shown:
                raise
            shown.pop()  # the least similar one


def question_of(exchange: Exchange, examples: Sequence[Pooled]) -> AskedQuestion:
    """Return a question to an agent as the prompt's input."""
    return AskedQuestion(
        does=exchange.agent.does,
        examples=[example_of(each.pair) for each in examples],
        leading=list(exchange.leading),
        shared=list(exchange.shared),
        question=exchange.question,
        kind=exchange.agent.name,
        scored_by=Criteria([*exchange.rubric.of(exchange.agent.name)]) if exchange.rubric else Criteria([]),
    )


def composed(question: str, examples: Sequence[Pooled]) -> str:
    """Return the whole prompt as A.2 stores it, with fewer examples if it is too long for a memory.

    An example that is itself a whole prompt is shown with its own question only: A.2 nests no prompts.
    """
    pairs = [each.pair for each in examples]
    # chr(10), since no expression in an f-string may have a backslash before Python 3.12.
    shown = [f"{chr(10).join(turns_with(each.leading, each.asks))}->{each.answer} | " for each in pairs]
    while shown and len(f"{''.join(shown)}{COMPOSED}{question}") > MAX_PAIR_CHARS:
        shown.pop()
    return f"{''.join(shown)}{COMPOSED}{question}" if shown else question


def example_of(pair: Pair) -> Example:
    """Return a memory as an example for an agent."""
    return Example(question=pair.asks, answer=pair.answer, leading=pair.leading, kind=pair.agent)


async def score(  # noqa: PLR0913, PLR0917  (what a pair is, and by what it is scored)
    exchange: Exchange,
    text: str,
    examples: Sequence[str],
    frozen: FrozenRubric,
    context: ScoredContext,
    lane: Lane = "user",
) -> PairScores:
    """Score a pair by its rubric (§3.1); a pair that could not be scored is returned without a score."""
    scored = PairScores(
        score=None,
        points={},
        most=100,
        rationale=f"The answer has {len(text)} characters; a memory holds at most {MAX_PAIR_CHARS}.",
        faults=[],
        scored_by="",
        rubric=frozen.version,
    )
    if len(text) > MAX_PAIR_CHARS:
        return scored
    rubric, question = frozen.rubric, "\n".join(turns_with(exchange.leading, exchange.kept))
    form, faults = ("", []) if context.scoring == "printed" else await _form_of(exchange, text)
    scored.update({"faults": [str(each) for each in faults], "scored_by": context.scorer})
    try:
        if context.scoring == "printed":  # by one number, with the rubric and the question of A.1
            # Version 0 is the shipped rubric, of which the paper prints another wording.
            shown = rubric.as_text() if frozen.version else printed(rubric)
            whole = Gradeable(rubric=shown, question=question, answer=text)
            number = await ask(score_whole, whole, context.scorer, lane=lane)
            total, why = number.value.score, "One number, without a reason (A.1.5)."
            points, by = {WHOLE_SCORE: total}, number.responder
        else:
            criteria = Criteria([*rubric.of(exchange.agent.name)])
            scored["most"] = sum(each.points for each in criteria.root)  # not all apply to each agent
            judged = Judgeable(
                question=question,
                answer=text,
                criteria=criteria,
                examples=list(examples),
                faults=faults,
                form=form,
            )
            answered = await ask(score_pair, judged, context.scorer, lane=lane)
            points = {each.name: answered.value.points[each.name] for each in criteria.root}
            total = rubric.total(exchange.agent.name, points)
            why, by = answered.value.rationale, answered.responder
    except (BadAnswer, PromptTooLong) as unusable:
        return {**scored, "rationale": f"It could not be scored: {unusable}"}
    return {**scored, "score": total, "points": points, "rationale": why, "scored_by": by}


async def _form_of(exchange: Exchange, text: str) -> tuple[str, list[Fault]]:
    """Return the form that was checked, and its faults; no form if it cannot be checked here."""
    form = exchange.agent.form
    try:
        return form or "", await asyncio.to_thread(check_form, form, text) if form else []
    except BadInput:
        raise
    except MnemeError as missing:  # the library is an extra
        return "", [Fault(where="not checked", what=str(missing))]


async def keep_good(  # noqa: PLR0913, PLR0917  (what a pair is, and where it goes)
    runtime: Runtime[Sharing],
    pool: MemoryPool,
    exchange: Exchange,
    written: WrittenAnswer,
    scored: PairScores,
    once: str | None = None,
) -> Outcome:
    """Store a scored pair above the threshold, and wake the training, also for one that the pool has already.

    A pair of which the pool has nearly the question and the answer is not stored; the key is the other's. An
    answer to another question that repeats an example it was shown is not stored either, whatever its score.
    """
    total = scored["score"] or 0
    # A low score counts for the retriever that chose the examples, too; without examples none does.
    rolled_back = await watch(pool, written["retriever"], total) if written["seen"] else ""
    threshold, basis = await threshold_of(runtime, exchange.agent.domain, scored["scored_by"])
    if total <= threshold:
        low = f"{total} is not above {threshold}."
        return Outcome(low, rolled_back=rolled_back, basis=basis)
    pair = Pair(
        prompt=exchange.kept,
        own_question=exchange.question if exchange.prompt else "",
        answer=written["text"],
        leading=list(exchange.leading),
        agent=exchange.agent.name,
        domain=exchange.agent.domain,
        score=total,
        retriever=written["retriever"],
        rubric=scored["rubric"],
        scoring="printed" if scored["points"].keys() == {WHOLE_SCORE} else "criteria",
    )
    info = runtime.execution_info
    change = Change(
        reason=f"Scored {total} of 100 by {scored['scored_by']}: {scored['rationale']}",
        actor=exchange.agent.name,
        source=Source(thread=info.thread_id or "" if info else ""),
        model=written["by"],
    )
    change = made_from(change, written.get("shared", []))
    other = await pool.nearly(pair)
    asked_before = other is not None and near(other.pair.asks, pair.asks)
    # If the pool has nearly this question, a similar answer is a repetition, not a copied example.
    if not asked_before and copies(pair.answer, written["seen"]):
        repeated = "it repeats an example that it was shown."
        return Outcome(repeated, rolled_back=rolled_back, basis=basis)
    is_new = False if other else (await keep(pool, [pair], change=change, once=once))[0]
    unwoken = await wake_training(runtime, pool.pool)
    key = other.key if other else pair.key
    return Outcome("", is_new, key, rolled_back, unwoken, basis)
