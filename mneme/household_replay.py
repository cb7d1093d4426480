"""`mneme household replay` and `list`: what a run did, told again or drawn."""

from pathlib import Path

from rich.markup import escape

from environments.household.scene import NAMES, Scene, scenes
from mneme.errors import BadInput, MnemeError
from mneme.household import print_decision
from mneme.household_runs import Run, run_named, runs
from mneme.show import console, print_json, print_table


def replay(name: str, step: int | None, png: Path | None, gif: Path | None, as_json: bool) -> None:
    """Draw a run, or tell its decisions up to a step and what they led to."""
    run = run_named(name)
    last = _last(run, step)
    if png is not None:
        _draw_step(run, last, png)
    if gif is not None:
        _animate(run, gif)
    written = [str(file) for file in (png, gif) if file is not None]
    if written:
        _say_written(written, as_json)
    elif as_json:
        for line in run.lines():
            print_json(line)
    else:
        _tell(run, last)


def _last(run: Run, step: int | None) -> int:
    """Return the step up to which is told. Raises BadInput for one that was not played."""
    run.episode()
    frames = run.frames()
    played = frames[-1].step if frames else 0
    if step is not None and not 0 <= step <= played:
        raise BadInput(f"--step: there is no step {step}.", f"Give 0 to {played}.")
    return played if step is None else step


def _draw_step(run: Run, step: int, file: Path) -> None:
    try:
        from environments.household.picture import draw_step  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise _no_pictures(error) from error
    draw_step(run.episode(), run.frames(), step, _writable(file, ".png"), _told(run))


def _animate(run: Run, file: Path) -> None:
    try:
        from environments.household.picture import animate  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise _no_pictures(error) from error
    animate(run.episode(), run.frames(), _writable(file, ".gif"), _told(run))


def _no_pictures(error: ImportError) -> MnemeError:
    return MnemeError(f"Pictures need {error.name}.", "Install mneme[evals].")


def _writable(file: Path, suffix: str) -> Path:
    if file.suffix.lower() != suffix:
        raise BadInput(f"--{suffix[1:]}: {file} does not end in {suffix}.", f"Name it {file.stem}{suffix}.")
    if not file.parent.is_dir():
        raise BadInput(f"--{suffix[1:]}: there is no folder {file.parent}.", "Make it, or name another.")
    return file


def _told(run: Run) -> dict[int, str]:
    """Give the manager's synopses by the step after which they were made."""
    decisions = [line for line in run.lines() if line["kind"] == "decision"]
    return {line["at"]: line["synopsis"] for line in decisions if line.get("synopsis")}


def _say_written(files: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"written": files})
    else:
        console.print(f"Written: {escape(', '.join(files))}", soft_wrap=True)


def _tell(run: Run, last: int) -> None:
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
    progress = (f"{key} {done}" for key, done in scene.progress.items())
    console.print(f"  placed: {escape(', '.join(progress))}", soft_wrap=True)


def list_runs(as_json: bool) -> None:
    """List the runs with their task, team, steps and outcome."""
    described = [_described(run) for run in runs()]
    if as_json:
        for each in described:
            print_json(each)
        return
    if not described:
        console.print("No runs yet: mneme household run")
        return
    columns = ("run", "task", "agents", "steps", "at least", "outcome", "answered by")
    print_table("Runs", columns, ([str(value) for value in each.values()] for each in described))


def _described(run: Run) -> dict[str, str | int]:
    """Say what a run played and how it stands; one that was killed can go on."""
    end, episode, frames = run.first("end"), run.episode(), run.frames()
    outcome = "interrupted" if end is None else "done" if end["success"] else "not done"
    return {
        "run": run.name,
        "task": episode.category,
        "agents": len(episode.starts),
        "steps": end["steps"] if end else len(frames),
        "at_least": end["bound"] if end else "",
        "outcome": outcome,
        "answered_by": "; ".join(end["answered_by"]) if end else "",
    }
