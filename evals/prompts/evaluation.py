"""Fitness of models for roles: golden cases for every question, asked of any responder.

A case says what must hold of an answer, never its words (`cases.py`). Every question goes the way it goes in
the product: the same wording, schema, repairs and checks. An answer is usable where these accept it, and
right where all properties of its case hold too. Models are asked one case after another, so that the
seconds are those of a single question. What was found of a model is kept for `mneme doctor`.
"""

import time
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Literal, cast

from langchain_core.messages import HumanMessage
from pydantic import BaseModel, Field

from mneme.client.measured import Fitness, keep_measured
from mneme.core.errors import BadAnswer, BadInput, NoTools, PromptTooLong
from mneme.core.settings import settings
from mneme.evals.options import AgentsCompared, JournalOptions, identify
from mneme.evals.prompts.cases import Golden, all_questions, as_json, golden
from mneme.evals.prompts.tables import FITNESS_NOTE, MEASURED_ROLES, Answers, Came, Outcome, tables
from mneme.evals.report import Journal, Progress, Report, Row
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import counting
from mneme.nodes.chat.memory_tools import calls_of, turn_of
from mneme.prompts.chat.paper_versions import ToolChoices, ToolGiven, choose_tools
from mneme.prompts.every import Key

MAX_ANSWER_CHARS = 2000
"""Characters of an answer that are kept to be looked at."""
Workflow = Literal["chat", "discussion", "household", "learning", "pddl", "sharing", "task_memories"]


class Options(JournalOptions):
    """Responders, and the questions to ask."""

    agents: AgentsCompared = Field(["auto"])
    workflows: list[Workflow] = Field([], description="Ask the questions of this workflow's roles only.")
    prompts: list[str] = Field([], description="Ask this question only: its name, or WORKFLOW/NAME.")
    without_examples: bool = Field(
        False, description="Leave the worked examples out of every question, to see whether they help."
    )


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Ask every chosen case that is still open, and report who is fit for which role."""
    chosen = _chosen(options)
    cases = [each for key, found in golden().items() if key in chosen for each in found]
    if options.without_examples:
        cases = [each.without_examples() for each in cases]
    people = {who.responder: who for who in [await identify(each) for each in options.agents]}
    journals, all_answers = list[Journal](), list[Answers]()
    limits = settings().model_dump(include={"num_ctx", "reply_seconds"})  # both decide what is answered
    for who in people.values():

        async def one(case: Golden, responder: str = who.responder) -> Row:
            return (await outcome_of(case, responder)).model_dump()

        configuration = who.model_dump() | limits | {"examples": not options.without_examples}
        journals.append(options.journal("model", configuration))
        rows = await journals[-1].play({case.name: case for case in cases}, one, progress)
        all_answers.append(Answers(who, rows))
    if not options.without_examples:
        for answers in all_answers:
            _keep(answers)
    others = ", ".join(str(each.path) for each in journals[1:])
    return journals[0].report(
        ", ".join(map(str, people.values())),
        {each.who.responder: _summary(each) for each in all_answers},
        tables(all_answers),
        [f"The raw answers of the other responders: {others}"] if others else [],
        [row for journal in journals for row in journal.rows],
    )


async def outcome_of(golden: Golden, responder: str) -> Outcome:
    """Ask a case. Raises `ModelUnavailable` if no model answers; an unusable reply is an outcome."""
    about = {"prompt": "/".join(golden.key), "kind": golden.case.kind}
    began = time.perf_counter()
    with counting() as asked:
        came, answer, wrong = await _answered(golden, responder)
    return Outcome(
        **about,
        came="repaired" if came == "first" and asked["repaired"] else came,
        wrong=wrong,
        answer=answer[:MAX_ANSWER_CHARS],
        prompt_tokens=asked["prompt_tokens"],
        reply_tokens=asked["reply_tokens"],
        seconds=time.perf_counter() - began,
    )


async def _answered(golden: Golden, responder: str) -> tuple[Came, str, list[str]]:
    """Return whether a usable answer came, its text, and its faults."""
    try:
        answer = await _asked(golden, responder)
    except BadAnswer as bad:
        return "refused", bad.raw, [str(bad)]
    except (NoTools, PromptTooLong) as unable:
        return "refused", "", [str(unable)]
    except BadInput as missing:
        if responder != "rules":  # a model needs no rule
            raise
        return "no rule", "", [str(missing)]
    found = as_json(answer)
    wrong = [str(each) for each in golden.case.expect if not each.holds(found)]
    return "first", answer if isinstance(answer, str) else answer.model_dump_json(by_alias=True), wrong


async def _asked(golden: Golden, responder: str) -> BaseModel | str:
    question = golden.question
    if question.name == choose_tools.name:  # it is answered by calling tools
        told = [HumanMessage(question.user_text(golden.given))]
        turn = await turn_of(question, cast(ToolGiven, golden.given), told, responder)
        return ToolChoices(calls=calls_of(turn))
    answered = await ask(golden.question, golden.given, responder, lane="background")
    return cast("BaseModel | str", answered.value)


def _chosen(options: Options) -> set[Key]:
    """Return the questions to ask. Raises `BadInput` for an unknown name."""
    named = {key for name in options.prompts for key in _named(name)}
    asked = {name for role in MEASURED_ROLES if role.workflow in options.workflows for name in role.questions}
    of_roles = {key for key in all_questions() if "/".join(key) in asked}
    chosen = [each for each in (named, of_roles) if each]
    return set.intersection(*chosen) if chosen else set(all_questions())


def _named(name: str) -> list[Key]:
    found = [key for key in all_questions() if name in {key[1], "/".join(key)}]
    if found:
        return found
    names = [key[1] for key in all_questions()]
    near = get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
    raise BadInput(f"--prompt {name}: no question has this name.", hint)


def _keep(answers: Answers) -> None:
    """Store a model's results for `mneme doctor`; rules are no model."""
    if not answers.who.is_model:
        return
    today = datetime.now(UTC).date().isoformat()
    reasons = {str(role): answers.why_not(role) for role in answers.roles}
    roles = {
        role: Fitness(fit=not why, why=why, on=today) for role, why in reasons.items() if why is not None
    }
    if roles:
        keep_measured(answers.who.responder, answers.who.digest, roles)


def _summary(answers: Answers) -> dict[str, Any]:
    """Return the figures by role and by question for `--json`."""
    return {
        "is_model": answers.who.is_model,
        "digest": answers.who.digest,
        "threshold": FITNESS_NOTE,
        "roles": {
            str(role): answers.figures(role.questions) | {"verdict": answers.verdict(role)}
            for role in answers.roles
        },
        "questions": {name: answers.figures([name]) for name in answers.asked},
    }
