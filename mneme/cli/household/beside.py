"""Two household runs side by side: what each decided at which step, and how they ended."""

from collections.abc import Sequence

from rich.table import Table

from mneme.api.household_runs import GOING_ON, Line, Run, brief
from mneme.cli.show import console
from mneme.environments.household.scene import NAMES


def print_beside(found: Sequence[Run], last: int) -> None:
    """Print the decisions of runs in a column each, up to a step, and below what each came to."""
    table = Table("step", *(run.name for run in found), title="Side by side", show_lines=True)
    columns = [_decisions(run, last) for run in found]
    for step in sorted({step for column in columns for step in column}):
        table.add_row(str(step), *(column.get(step, "") for column in columns))
    table.add_section()
    table.add_row("end", *(_end(run) for run in found))
    console.print(table)


def _decisions(run: Run, last: int) -> dict[int, str]:
    """Return what was newly decided at each step, a line for each member that does something else."""
    decided: dict[int, str] = {}
    doing: dict[int, str] = {}
    for line in run.lines():
        if line["kind"] == "decision" and line["step"] != "summarise" and line["at"] <= last:
            actions = _actions(line)
            news = [f"{NAMES[n]} {each}" for n, each in actions.items() if doing.get(n) != each]
            doing |= actions
            if news:
                decided[line["at"]] = "\n".join(news)
    return decided


def _actions(line: Line) -> dict[int, str]:
    proposed = [each["action"] for each in line["proposals"]]
    actions = line.get("allocation") or proposed
    return {number: brief(action) for number, action in enumerate(actions) if action != GOING_ON}


def _end(run: Run) -> str:
    """Say how a run ended, with the same figures for all."""
    end = run.first("end")
    if end is None:
        return "interrupted"
    how = "done" if end["success"] else "not done"
    counted = (
        f"{end['counters'].get(name, 0)} {name}" for name in ("conflicts", "redundant", "messages", "calls")
    )
    least = "" if end["bound"] is None else f" (bound {end['bound']})"
    return f"{how} in {end['steps']} steps{least}\n{', '.join(counted)}"
