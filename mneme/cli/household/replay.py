"""`mneme household replay` and `list`: print or draw what happened in a run."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from mneme.api.household import played
from mneme.api.household_runs import Run, run_named, runs
from mneme.cli.household.beside import print_beside
from mneme.cli.household.play import print_decision
from mneme.cli.show import console, emit, errors, print_result, print_rows, print_table, prints_json
from mneme.core.errors import BadInput, needs
from mneme.environments.household.scene import NAMES, Scene, scenes

if TYPE_CHECKING:
    from PIL.Image import Image

    from mneme.environments.household.picture import Film


def replay(
    name: Annotated[str, typer.Argument(help="The name of a run (see `mneme household list`), or its file.")],
    other: Annotated[str | None, typer.Argument(help="Another run, to be shown beside the first.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Up to this step (default: the last).")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Draw the floor plan at that step.")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", help="Draw the whole run as an animation.")] = None,
) -> None:
    """Print or draw what happened in a run."""
    found = [run_named(each) for each in (name, other) if each]
    last = max(_last(run, None) for run in found) if step is None else step
    if not any(0 <= last <= _last(run, None) for run in found):
        _last(found[0], step)
    for run in found:
        if gap := _gap(run):
            errors.print(f"[yellow]{escape(run.name)}: {escape(gap)}[/]", soft_wrap=True)
    if png is not None:
        _draw_step(found, last, png)
    if gif is not None:
        _animate(found, gif)
    written = [str(file) for file in (png, gif) if file is not None]
    if written:
        _print_files(written)
    elif prints_json():
        for run in found:
            for line in run.lines():
                emit({"run": run.name, **line} if len(found) > 1 else line)
    elif len(found) > 1:
        print_beside(found, last)
    else:
        _print_run(found[0], last)


def _gap(run: Run) -> str:
    """Return what is missing in the trace; "" if nothing is."""
    if missing := run.missing():
        return f"{len(missing)} steps are not in the trace, from step {missing[0]} to {missing[-1]}."
    if run.first("end") is None:
        return "The run was interrupted: the command that began it continues it."
    return ""


def _last(run: Run, step: int | None) -> int:
    """Return the last step to show. Raises BadInput for one that was not played."""
    run.episode()
    frames = run.frames()
    played = frames[-1].step if frames else 0
    if step is not None and not 0 <= step <= played:
        raise BadInput(f"--step: there is no step {step}.", f"Give 0 to {played}.")
    return played if step is None else step


def _draw_step(found: Sequence[Run], step: int, file: Path) -> None:
    with needs("A picture", "pictures"):
        from mneme.environments.household.picture import draw_step
    draw_step([_film(run) for run in found], step, _writable(file, ".png"))


def _animate(found: Sequence[Run], file: Path) -> None:
    with needs("A picture", "pictures"):
        from mneme.environments.household.picture import animate
    animate([_film(run) for run in found], _writable(file, ".gif"))


def _film(run: Run) -> "Film":
    from mneme.environments.household.picture import Film

    return Film(run.episode(), run.frames(), _synopses(run), run.name, _strips(run))


def _strips(run: Run) -> "Callable[[int], Sequence[Image]] | None":
    """Return what each agent saw after a step, where the run was played with eyes."""
    if not run.has_eyes():
        return None
    from mneme.environments.household.visual.film import Sights, strip

    sights = Sights(run.episode(), run.frames())
    return lambda step: [strip(view) for view in sights.at(step)]


def _writable(file: Path, suffix: str) -> Path:
    if file.suffix.lower() != suffix:
        raise BadInput(f"--{suffix[1:]}: {file} does not end in {suffix}.", f"Name it {file.stem}{suffix}.")
    if not file.parent.is_dir():
        raise BadInput(f"--{suffix[1:]}: there is no folder {file.parent}.", "Create it, or choose another.")
    return file


def _synopses(run: Run) -> dict[int, str]:
    """Return the manager's synopses by the step after which they were made."""
    decisions = [line for line in run.lines() if line["kind"] == "decision"]
    return {line["at"]: line["synopsis"] for line in decisions if line.get("synopsis")}


def _print_files(files: list[str]) -> None:
    emit({"written": files})
    console.print(f"Written: {escape(', '.join(files))}", soft_wrap=True)


def _print_run(run: Run, last: int) -> None:
    for line in run.lines():
        if line["kind"] == "decision" and line["at"] <= last:
            print_decision(line)
    played = scenes(run.episode(), run.frames())
    _print_scene(run, next(scene for scene in reversed(played) if scene.step <= last))


def _print_scene(run: Run, scene: Scene) -> None:
    names = {thing.id: thing.name for thing in run.episode().things}
    held = [" + ".join(names[thing] for thing in hands) or "nothing" for hands in scene.hands]
    rows = zip(NAMES, held, scene.doing, strict=False)
    print_table(f"After step {scene.step}", ("who", "holds", "does"), rows)
    progress = (
        f"{scene.progress.get(goal.key, 0)} of {goal.count} {goal.name} {goal.relation} {goal.target_name}"
        for goal in run.episode().goals
    )
    console.print(f"  placed: {escape(', '.join(progress))}", soft_wrap=True)


def list_() -> None:
    """List the runs, the latest first."""
    found = [played(run) for run in runs()]
    if not found:
        console.print("No runs yet. Start one: mneme household run")
        return
    print_result(found, partial(print_rows, titled="Runs"))
