"""The tables of `mneme eval model`: by role, by question, and what was wrong."""

from collections.abc import Sequence

from pydantic import BaseModel

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.chat.contradictions import interval, percent
from mneme.evals.prompts.asking import Outcome
from mneme.evals.prompts.judging import THRESHOLD, Figures, figures_of, why_not
from mneme.evals.prompts.roles import ROLES, Role
from mneme.evals.report import table
from mneme.prompts.every import Key

MAX_WRONG = 25
"""Lines of the table of wrong answers; the journal has them all."""
MAX_FAULT_CHARS = 160
NO_MODEL = "no model"


class Answers(BaseModel):
    """What came of the cases that one responder was asked, by question and case."""

    who: Identity
    outcomes: dict[Key, dict[str, Outcome]]

    @property
    def found(self) -> dict[Key, Figures]:
        """The figures of each question."""
        return {key: figures_of(list(each.values())) for key, each in self.outcomes.items()}

    def of_role(self, role: Role) -> Figures:
        """Return the figures of a role's questions together, of those that were asked."""
        return figures_of([each for key in role.questions for each in self.outcomes.get(key, {}).values()])

    def why_not(self, role: Role) -> str | None:
        """Return why the responder is not fit for a role: empty where it is, None where that is open."""
        return why_not(role, self.found)

    def verdict(self, role: Role) -> str:
        """Say whether the responder is fit; rules are none that could be."""
        if not self.who.is_model:
            return NO_MODEL
        why = self.why_not(role)
        if why is None:
            return "open: not all asked"
        return f"not fit: {why}" if why else "fit"


def asked_roles(answers: Answers) -> list[Role]:
    """Return the roles that have a question which was asked."""
    return [role for role in ROLES if any(key in answers.outcomes for key in role.questions)]


def tables(all_answers: Sequence[Answers]) -> list[Table]:
    """Return every table, models apart from rules."""
    models = [each for each in all_answers if each.who.is_model]
    rules = [each for each in all_answers if not each.who.is_model]
    made = []
    if models:
        verdicts = [[role, each.who.responder, each.verdict(role)] for role, each in _pairs(models)]
        title = f"Which model for which role. {THRESHOLD}"
        made.append(table(title, ["role", "model", "verdict"], verdicts, figures=False))
        made.append(_figures("By role: answers usable at first, after repair, and right", models))
    if rules:
        made.append(_figures("Answered by rules, which are no model: these figures stand for none", rules))
    return [*made, _by_question(all_answers), *(table for each in all_answers for table in _wrong_of(each))]


def _pairs(all_answers: Sequence[Answers]) -> list[tuple[Role, Answers]]:
    """Return every role with each responder that was asked one of its questions."""
    return [(role, each) for role in ROLES for each in all_answers if role in asked_roles(each)]


def _figures(title: str, all_answers: Sequence[Answers]) -> Table:
    columns = ["role", "answered by", "cases", "at first", "repaired", "refused", "right", "95 %"]
    columns += ["injected right", "tokens a case", "s a case"]
    return table(title, columns, [_row(*each) for each in _pairs(all_answers)], figures=False)


def _row(role: Role, answers: Answers) -> list[object]:
    of = answers.of_role(role)
    injected = of.injected
    return [
        role,
        answers.who.responder,
        of.cases or "no rule",
        *(percent(each / of.cases if of.cases else None) for each in (of.first, of.repaired, of.refused)),
        percent(of.right["share"]),
        interval(of.right),
        f"{injected['right']} of {injected['cases']}" if injected["cases"] else "–",
        round(of.tokens) if of.tokens else "–",
        f"{of.seconds:.1f}",
    ]


def _by_question(all_answers: Sequence[Answers]) -> Table:
    found = {each.who.responder: each.found for each in all_answers}
    keys = dict.fromkeys(key for each in found.values() for key in each)
    rows = [["/".join(key), *(_question_cell(each.get(key)) for each in found.values())] for key in keys]
    return table("Right answers by question; in brackets: usable ones", ["question", *found], rows)


def _question_cell(of: Figures | None) -> str:
    if of is None or not of.cases:
        return "no rule" if of else "–"
    return f"{of.right['right']} of {of.cases} ({of.first + of.repaired})"


def _wrong_of(answers: Answers) -> list[Table]:
    rows = [
        [f"{'/'.join(key)}\n{name} ({each.kind})", _fault(each)]
        for key, cases in answers.outcomes.items()
        for name, each in cases.items()
        if each.is_asked and not each.is_right
    ]
    more = f", the first {MAX_WRONG} of {len(rows)}" if len(rows) > MAX_WRONG else ""
    title = f"What {answers.who.responder} got wrong{more}; its answers stand in the raw results"
    columns = ["case", "what does not hold"]
    return [table(title, columns, rows[:MAX_WRONG], figures=False, lines=True)] if rows else []


def _fault(outcome: Outcome) -> str:
    said = ("refused: " if outcome.came == "refused" else "") + "; ".join(outcome.wrong)
    return said if len(said) <= MAX_FAULT_CHARS else f"{said[: MAX_FAULT_CHARS - 1]}…"
