"""The issues of a discussion, read from its turns: who raised and who answered each.

Nothing is kept beside the turns: what they say is folded anew, so that no second account of it can be wrong.
"""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel

from mneme.stores.discussions.discussions import Turn

Status = Literal["open", "answered", "accepted"]


class Issue(BaseModel):
    """A gap, objection or question: `concerns` names the roles that it asks, all where it is empty."""

    number: int
    about: str
    raised_by: str
    raised_in: int
    concerns: list[str] = []
    answered_by: str = ""
    answered_in: int = 0
    accepted_in: int = 0

    @property
    def status(self) -> Status:
        """Return the issue's status: an answer is accepted once the one who raised the issue accepts."""
        if self.accepted_in:
            return "accepted"
        return "answered" if self.answered_in else "open"

    def __str__(self) -> str:
        answer = f"answered in turn {self.answered_in} by {self.answered_by}" if self.answered_in else "open"
        asked = f" for {', '.join(self.concerns)}" if self.concerns else ""
        return f"{self.about} (raised in turn {self.raised_in} by {self.raised_by}{asked}, {answer})"


def issues_of(turns: Iterable[Turn]) -> list[Issue]:
    """Return all issues in the order in which they were raised; numbers count from 1."""
    issues: list[Issue] = []
    for turn in turns:
        for issue in issues:
            own = issue.raised_by == turn.title
            if issue.number in turn.answers and not issue.answered_in:
                issue.answered_by, issue.answered_in = turn.title, turn.number
            if own and issue.answered_in and (turn.accept or issue.number in turn.answers):
                issue.accepted_in = issue.accepted_in or turn.number
        for number, raised in enumerate(turn.raises, start=len(issues) + 1):
            issues.append(Issue(number=number, raised_by=turn.title, raised_in=turn.number, **dict(raised)))
    return issues
