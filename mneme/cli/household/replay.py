"""`mneme household replay` and `list`: print or draw what happened in a run, or in two side by side."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from mneme.api.household import played, replayed
from mneme.api.household_runs import GOING_ON, Line, Run, brief, run_named, runs
from mneme.api.tables import Table
from mneme.cli.show import (
    console,
    emit,
    errors,
    print_beside,
    print_result,
    print_rows,
    print_table,
    prints_json,
    say,
)
from mneme.client.home import opened
from mneme.core.errors import BadInput, needs
from mneme.environments.household.scene import AGENT_NAMES
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.recall import read_again

if TYPE_CHECKING:
    from mneme.environments.household.picture import Film


async def replay(
    name: Annotated[str, "The name of a run (see `mneme household list`), or its file."],
    other: Annotated[str | None, typer.Argument(help="Another run, to be shown beside the first.")] = None,
    step: Annotated[int | None, "Up to this step (default: the last)."] = None,
    png: Annotated[Path | None, "Draw the floor plan at that step."] = None,
    gif: Annotated[Path | None, "Draw the whole run as an animation."] = None,
    team: Annotated[str, "Refuse a run of another team; a run's name says whose it is."] = "",
) -> None:
    """Print or draw what happened in a run."""
    found = [await run_named(each) for each in (name, other) if each is not None]
    for run in found:
        run.episode()  # one that never began is refused
        if team and run.context().get("team") != team:
            raise BadInput(f"--team: the run {run.name} is not of the team {team}.", "Leave --team out.")
    lasts = [max((frame.step for frame in run.frames()), default=0) for run in found]
    last = max(lasts) if step is None else step
    if not 0 <= last <= max(lasts):
        raise BadInput(f"--step: there is no step {step}.", f"Give 0 to {max(lasts)}.")
    for run in found:  # to stderr, so that --json stays one line an event
        if gap := _gap(run):
            say(f"[yellow]{escape(run.name)}: {escape(gap)}[/]", errors)
    if png is not None or gif is not None:
        _draw(found, last, png, gif)
    elif prints_json():
        for run in found:
            for line in run.lines:
                emit({"run": run.name, **line} if len(found) > 1 else line)
    elif len(found) > 1:
        _print_beside(found, last)
    else:
        await _print_run(found[0], last)


def _gap(run: Run) -> str:
    """Describe missing steps, or a missing end, of the run; "" if it is complete."""
    if missing := run.missing():
        return f"{len(missing)} steps are not kept, from step {missing[0]} to {missing[-1]}."
    if run.first("end") is None:
        return "The run was interrupted: the command that began it continues it."
    return ""


def _draw(found: Sequence[Run], step: int, png: Path | None, gif: Path | None) -> None:
    """Draw a step, or all of them."""
    with needs("A picture", "pictures"):
        from mneme.environments.household.picture import animate, draw_step

    for file, suffix in ((png, ".png"), (gif, ".gif")):
        if file is not None and file.suffix.lower() != suffix:
            named = f"--{suffix[1:]}: {file} does not end in {suffix}."
            raise BadInput(named, f"Name it {file.stem}{suffix}.")
        if file is not None and not file.parent.is_dir():
            raise BadInput(
                f"--{suffix[1:]}: there is no folder {file.parent}.", "Create it, or choose another."
            )
    films = [_film(run) for run in found]
    if png is not None:
        draw_step(films, step, png)
    if gif is not None:
        animate(films, gif)
    written = [str(file) for file in (png, gif) if file is not None]
    emit({"written": written})
    say(f"Written: {escape(', '.join(written))}")


def _film(run: Run) -> "Film":
    """Return the content of a film: the steps and synopses, and each agent's view in the visual setting."""
    from mneme.environments.household.picture import Film

    synopses = {line["at"]: line["synopsis"] for line in run.lines if line.get("synopsis")}
    if not run.has_eyes():
        return Film(run.episode(), run.frames(), synopses, run.name, None)
    from mneme.environments.household.visual.film import Sights, strip

    sights = Sights(run.episode(), run.frames())
    strips = lambda step: [strip(view) for view in sights.at(step)]  # noqa: E731
    return Film(run.episode(), run.frames(), synopses, run.name, strips)


async def _print_run(run: Run, last: int) -> None:
    # a run keeps the names of other workflows' memories alone: what was erased since is not printed
    if names := (run.first("end") or {}).get("shared"):
        async with opened(reading=True) as place:
            known = await read_again(place, names) if isinstance(place, Ledger) else []
        for text in [each.line for each in known] or ["what was shown is forgotten, or at a server"]:
            say(f"  [cyan]shared[/]   {escape(text)}")
    for line in run.lines:
        if line["kind"] == "decision" and line["at"] <= last:
            print_decision(line)
    step = next(each for each in reversed(replayed(run).steps) if each.step <= last)
    rows = ((each.name, " + ".join(each.holds) or "nothing", each.does) for each in step.members)
    print_table(f"After step {step.step}", ("who", "holds", "does"), rows)
    placed = ", ".join(f"{each.done} of {each.count} {each.what}" for each in step.goals)
    say(f"  placed: {escape(placed)}")


def print_decision(line: Line) -> None:
    """Print each member's action on a line of its own, or the manager's synopsis."""
    at = f"  [cyan]step {line['at']:>3}[/] "
    if line["step"] == "summarise":
        synopsis = line.get("synopsis") or f"none: {line['fallback']}"
        say(f"{at}[dim]synopsis: {escape(synopsis)}[/]")
        return
    parts, going_on, why = list[str](), list[str](), ""
    for number, proposed in enumerate(each["action"] for each in line["proposals"]):
        action = line["allocation"][number] if line.get("allocation") else proposed
        instead = "" if brief(action) == brief(proposed) else f" [dim](proposed {escape(brief(proposed))})[/]"
        why = line.get("reason", "") if instead else why
        if "under way" in action and not instead:
            going_on.append(AGENT_NAMES[number])
            continue
        does = "continues" if "under way" in action else escape(brief(action))
        parts.append(f"[bold]{AGENT_NAMES[number]}[/] {does}{instead}")
    if "fallback" in line:
        say(f"{at}[yellow]no usable allocation: {escape(line['fallback'])}[/]")
    parts += [f"[dim]{' and '.join(going_on)} continue{'s' * (len(going_on) == 1)}[/]"] * bool(going_on)
    if wish := line.get("forbidden"):
        parts.append(f"[yellow]the manager says that a wish forbids the task: {escape(wish)}[/]")
    parts += [f"[dim]manager: {escape(why)}[/]"] * bool(why)
    print_beside(at, "\n".join(parts))


def _print_beside(found: Sequence[Run], last: int) -> None:
    """Print the decisions of each run in a column, up to a step, and below how each run ended."""
    columns = [_decisions(run, last) for run in found]
    steps = sorted({step for column in columns for step in column})
    rows = [[str(step), *(column.get(step, "") for column in columns)] for step in steps]
    rows.append(["end", *(ending(run.first("end")) for run in found)])
    console.print(Table("Side by side", ["step", *(run.name for run in found)], rows, lines=True))


def _decisions(run: Run, last: int) -> dict[int, str]:
    """Return the new decisions at each step, a line for each member whose action changes."""
    decided: dict[int, str] = {}
    doing: dict[int, str] = {}
    for line in run.lines:
        if line["kind"] == "decision" and line["step"] != "summarise" and line["at"] <= last:
            chosen = line.get("allocation") or [each["action"] for each in line["proposals"]]
            actions = {number: brief(each) for number, each in enumerate(chosen) if each != GOING_ON}
            news = [f"{AGENT_NAMES[n]} {each}" for n, each in actions.items() if doing.get(n) != each]
            doing |= actions
            if news:
                decided[line["at"]] = "\n".join(news)
    return decided


COUNTER_NAMES = {
    "conflicts": "conflicts",
    "redundant": "redundant actions",
    "messages": "messages",
    "calls": "calls",
    "repaired": "repaired answers",
    "fallbacks": "fallbacks",
}
"""Counters of a run's result, with the names that are printed."""


def ending(end: Line | None) -> str:
    """Describe how a run ended, from its last line, with the same figures for every run."""
    if end is None:
        return "interrupted"
    least = "" if end["bound"] is None else f" (lower bound: {end['bound']})"
    counted = ", ".join(f"{end['counters'].get(name, 0)} {words}" for name, words in COUNTER_NAMES.items())
    return f"{'done' if end['success'] else 'not done'} in {end['steps']} steps{least}; {counted}."


async def list_(team: Annotated[str, "Only the runs of this team (default: all)."] = "") -> None:
    """List the runs, the latest first."""
    found = [played(run) for run in await runs() if not team or run.context().get("team") == team]
    if not found:
        console.print("No runs yet. Start one: mneme household run")
        return
    print_result(found, partial(print_rows, titled="Runs"))
