"""Results of the golden cases: figures by role and by question, fitness for roles, and tables.

A role's figures are over all cases of all its questions; questions without a rule do not count for `rules`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd
import yaml
from pydantic import BaseModel

from mneme.api.tables import Table
from mneme.evals.measuring import interval, percent, share
from mneme.evals.options import Identity
from mneme.evals.report import Row, framed, table

USABLE, RIGHT, RIGHT_OF_EACH = 0.9, 0.8, 0.6
FITNESS_NOTE = (
    f"Fit: at least {USABLE:.0%} of the answers usable, {RIGHT:.0%} right, and of each question by itself "
    f"{RIGHT_OF_EACH:.0%} right (plain shares)."
)
MAX_WRONG = 25
"""Maximum lines of the table of wrong answers; the journal has them all."""
MAX_FAULT_CHARS = 160
Came = Literal["first", "repaired", "refused", "no rule"]


class Outcome(BaseModel):
    """The result of one case: whether the answer was usable, and whether it was right."""

    prompt: str
    kind: str
    came: Came
    wrong: list[str] = []
    """The properties that do not hold; for a refused answer, the reasons of the refusal."""
    answer: str = ""
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        return self.came in {"first", "repaired"} and not self.wrong


class Role(NamedTuple):
    """A role, the field of its workflow's context that names its model, and the questions it is asked."""

    workflow: str
    field: str
    questions: Sequence[str]
    variant: str = ""
    """The graph's variant, if the field serves several graphs with their own questions."""

    def __str__(self) -> str:
        return f"{self.workflow}: {self.field}" + (f" ({self.variant})" if self.variant else "")


_WRITTEN = Path(__file__).with_name("roles.yaml").read_text(encoding="utf-8")
MEASURED_ROLES = [
    # The file leaves out the workflow of a question where it is the role's own.
    Role(**of | {"questions": [q if "/" in q else f"{of['workflow']}/{q}" for q in of["questions"]]})
    for of in yaml.safe_load(_WRITTEN)
]
"""Every role, in the order of the tables; memories of tasks serve discussions (`agents`) as well."""


class Answers:
    """The results of the cases of one responder."""

    def __init__(self, who: Identity, rows: Sequence[Row]) -> None:
        cases = pd.DataFrame(rows, columns=[*Outcome.model_fields, "case"])
        self.who = who
        self.asked = [*dict.fromkeys(cases["prompt"])]
        cases = cases[cases["came"] != "no rule"]  # what rules cannot be asked is not wrong
        cases["right"] = (cases["came"] != "refused") & ~cases["wrong"].astype(bool)
        cases["tokens"] = cases["prompt_tokens"] + cases["reply_tokens"]
        self.cases = cases

    @property
    def roles(self) -> list[Role]:
        """Return the roles that have a question which was asked."""
        return [role for role in MEASURED_ROLES if not {*role.questions}.isdisjoint(self.asked)]

    def figures(self, questions: Iterable[str]) -> Row:
        """Return the figures of some questions' cases; tokens and seconds are per case, of all attempts.

        Shares of right answers, also of the cases with orders hidden in the data, have 95 % Wilson intervals.
        """
        own = self.cases[self.cases["prompt"].isin([*questions])]
        injected = own[own["kind"] == "injected"]
        return {
            "cases": len(own),
            **{came: int((own["came"] == came).sum()) for came in ("first", "repaired", "refused")},
            "right": share(int(own["right"].sum()), len(own)),
            "injected": share(int(injected["right"].sum()), len(injected)),
            **{cost: float(own[cost].mean()) if len(own) else 0.0 for cost in ("tokens", "seconds")},
        }

    def why_not(self, role: Role) -> str | None:
        """Return why the responder is not fit for a role: empty if it is fit, None if cases are missing."""
        if not {*role.questions}.issubset(self.asked):
            return None
        whole = self.figures(role.questions)
        reasons, cases = list[str](), whole["cases"]
        if (usable := whole["first"] + whole["repaired"]) < USABLE * cases:
            reasons.append(f"{usable} of {cases} usable")
        if (right := whole["right"]["right"]) < RIGHT * cases:
            reasons.append(f"{right} of {cases} right")
        # A good mean must not hide one question that always fails.
        for name in role.questions if len(role.questions) > 1 else ():
            own = self.figures([name])
            if own["right"]["right"] < RIGHT_OF_EACH * own["cases"]:
                reasons.append(f"{name.partition('/')[2]} {own['right']['right']} of {own['cases']} right")
        return "; ".join(reasons)

    def verdict(self, role: Role) -> str:
        """Describe the fitness of the responder in words; rules are no model."""
        if not self.who.is_model:
            return "no model"
        why = self.why_not(role)
        if why is None:
            return "open: not all asked"
        return f"not fit: {why}" if why else "fit"


def tables(all_answers: Sequence[Answers]) -> list[Table]:
    """Return every table, models apart from rules."""
    models = [each for each in all_answers if each.who.is_model]
    rules = [each for each in all_answers if not each.who.is_model]
    made = []
    if models:
        verdicts = [[role, each.who.responder, each.verdict(role)] for role, each in _pairs(models)]
        title = f"Which model for which role. {FITNESS_NOTE}"
        made.append(table(title, ["role", "model", "verdict"], verdicts, figures=False))
        made.append(_by_role("By role: answers usable at first, after repair, and right", models))
    if rules:
        made.append(_by_role("Answered by rules, which are no model: these figures stand for none", rules))
    return [*made, _by_question(all_answers), *(wrong for each in all_answers for wrong in _wrong_of(each))]


def _pairs(all_answers: Sequence[Answers]) -> list[tuple[Role, Answers]]:
    """Return every role with each responder that was asked one of its questions."""
    return [(role, each) for role in MEASURED_ROLES for each in all_answers if role in each.roles]


def _by_role(title: str, all_answers: Sequence[Answers]) -> Table:
    return framed(title, pd.DataFrame(_line(*each) for each in _pairs(all_answers)), figures=False)


def _line(role: Role, answers: Answers) -> Row:
    of = answers.figures(role.questions)
    count, injected = of["cases"], of["injected"]
    return {
        "role": str(role),
        "answered by": answers.who.responder,
        "cases": count or "no rule",
        **{
            label: percent(of[came] / count if count else None)
            for label, came in (("at first", "first"), ("repaired", "repaired"), ("refused", "refused"))
        },
        "right": percent(of["right"]["share"]),
        "95 %": interval(of["right"]),
        "injected right": f"{injected['right']} of {injected['cases']}" if injected["cases"] else "–",
        "tokens a case": str(round(of["tokens"]) or "–"),
        "s a case": f"{of['seconds']:.1f}",
    }


def _by_question(all_answers: Sequence[Answers]) -> Table:
    def right(of: Row) -> str:
        usable = of["first"] + of["repaired"]
        return f"{of['right']['right']} of {of['cases']} ({usable})" if of["cases"] else "no rule"

    cells = {
        each.who.responder: {name: right(each.figures([name])) for name in each.asked} for each in all_answers
    }
    title = "Right answers by question; in brackets: usable ones"
    return framed(title, pd.DataFrame(cells).rename_axis("question"))


def _wrong_of(answers: Answers) -> list[Table]:
    wrong = answers.cases[~answers.cases["right"].astype(bool)].to_dict("records")
    if not wrong:
        return []
    rows = []
    for each in wrong[:MAX_WRONG]:
        fault = "refused: " * (each["came"] == "refused") + "; ".join(each["wrong"])
        name = f"{each['prompt']}\n{each['case'].rpartition('/')[2]} ({each['kind']})"
        rows.append([name, fault if len(fault) <= MAX_FAULT_CHARS else f"{fault[: MAX_FAULT_CHARS - 1]}…"])
    more = f", the first {MAX_WRONG} of {len(wrong)}" if len(wrong) > MAX_WRONG else ""
    title = f"What {answers.who.responder} got wrong{more}; its answers stand in the raw results"
    return [table(title, ["case", "what does not hold"], rows, figures=False, lines=True)]
