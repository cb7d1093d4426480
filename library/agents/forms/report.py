"""The result of a check of form: each fault with its place, and notes."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from mneme.prompts.sharing.scoring import Fault


class FormReport(BaseModel):
    """The faults of a form (without faults it is correct), and notes on what other rules would not accept."""

    model_config = ConfigDict(frozen=True)

    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.faults

    def as_text(self) -> str:
        """Write one line per fault, or that the form holds."""
        return "\n".join(str(fault) for fault in self.faults) or "The form holds."


def report(faults: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> FormReport:
    """Make a report from (where, what) pairs."""
    return FormReport(
        faults=tuple(Fault(where=where, what=what) for where, what in faults), notes=tuple(notes)
    )
