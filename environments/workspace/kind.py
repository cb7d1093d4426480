"""Open a task of files: a folder that the task names, or one of a described world's own."""

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mneme.core.errors import BadInput
from mneme.environments.workspace.description import (
    Aim,
    CaseText,
    Described,
    Held,
    Language,
    read_description,
)
from mneme.environments.workspace.python_tactics import PythonTactics
from mneme.environments.workspace.shell_tactics import ShellTactics
from mneme.environments.workspace.tactics import Tactics
from mneme.environments.workspace.template import template_of
from mneme.environments.workspace.world import About, FilesWorld
from mneme.environments.worlds import Task, WorldKind

TACTICS: dict[Language, type[Tactics]] = {"python": PythonTactics, "shell": ShellTactics}
SCOPES: dict[Language, str] = {"python": "python_functions", "shell": "shell_pipelines", "none": "workspace"}
"""Lessons about one language serve in every world of it."""
NOUNS: dict[Language, str] = {"python": "functions", "shell": "pipelines", "none": "tasks"}
ENDINGS: dict[str, Language] = {".py": "python", ".sh": "shell"}
DEFINED = re.compile(r"\b(?:def|class|function)\s+(\w+)|^\s*(\w+)\s*=[^=]", re.MULTILINE)


class WorkspaceKind(WorldKind):
    """Folders that are held to a command; `described` where a YAML file says what they are held to."""

    def __init__(self, described: Described | None = None, beside: Path | None = None) -> None:
        self._described, self._beside = described, beside or Path()
        self.name = described.name if described else "workspace"

    @property
    def vocabulary(self) -> str:  # type: ignore[override]
        """Return what the tactics of all languages and their features are called."""
        known = [tactics() for tactics in TACTICS.values()]
        return "\n".join(text for each in known for text in (each.definition, *each.known_features()))

    def names(self, material: str) -> Sequence[str]:
        """Return what the files define: functions, classes, variables."""
        return sorted({name for found in DEFINED.findall(material) for name in found if name})

    @classmethod
    def of(cls, file: Path) -> "WorkspaceKind":
        """Return the kind that a YAML file describes. Raises BadInput."""
        state = file.stat().st_mtime_ns if file.is_file() else 0
        return cls(_read(file, state), file.resolve().parent)

    def open(self, task: Task) -> FilesWorld:
        """Open a task by its `case`, or by `workspace` and `check`. Raises BadInput for what is missing."""
        if self._described is None:
            return self._open_folder(task)
        case = self._case(task)
        held = self._described.held_for(case)
        _can_be_held(held)
        given = str(task.given.get("workspace") or "")
        folder = given or (str(self._beside / case.workspace) if case and case.workspace else "")
        files = case.files if case and not given else {}
        if not folder and not files:
            raise BadInput(f"The world {self.name} needs a task: `case` or `workspace`.", self._cases())
        template = template_of(folder, files, held.setup, held.bounds)
        language = self._described.language
        scope = self._described.scope or (SCOPES[language] if language != "none" else self.name)
        about = About(scope, self._described.noun, self._described.about, self._described.versions)
        return FilesWorld(template, held, about, _tactics(language))

    def cases(self) -> Sequence[Task]:
        """Return the tasks of the described world."""
        described = self._described.tasks if self._described else []
        return [Task(id=case.id, text=case.task, given={"case": case.id}) for case in described]

    def similar(self, task: Task, seed: int) -> Sequence[Task]:
        """Return the other tasks of the described world, in a seeded order."""
        others = [case for case in self.cases() if case.id != task.id]
        random.Random(seed).shuffle(others)  # noqa: S311
        return others

    def _case(self, task: Task) -> CaseText | None:
        assert self._described is not None
        name = task.given.get("case")
        if not name:
            return None
        found = next((case for case in self._described.tasks if case.id == name), None)
        if found is None:
            raise BadInput(f"The world {self.name} has no task {name!r}.", self._cases())
        return found

    def _cases(self) -> str:
        cases = [case.id for case in self._described.tasks] if self._described else []
        return f"It has: {', '.join(cases)}." if cases else "It has no tasks of its own: give --workspace."

    def _open_folder(self, task: Task) -> FilesWorld:
        folder, check = (str(task.given.get(each) or "") for each in ("workspace", "check"))
        if not folder or not check:
            raise BadInput("The world workspace needs a folder and a check.", "Give --workspace and --check.")
        held = Held(
            check=check,
            may_change=task.given.get("may_change") or [],
            metrics=[Aim.read(each) for each in task.given.get("metrics") or []],
        )
        template = template_of(folder, {}, "", held.bounds)
        found = [
            ENDINGS[Path(each).suffix]
            for each in (FilesWorld(template, held, About(""), None).open_files)
            if Path(each).suffix in ENDINGS
        ]
        language = max(found, key=found.count) if found else "none"
        about = About(SCOPES[language], NOUNS[language])
        return FilesWorld(template, held, about, _tactics(language))


def _can_be_held(held: Held) -> None:
    if not held.check and not (held.measure and held.same_output):
        raise BadInput(
            "A world needs a `check`, or a `measure` with `same_output: true`; or every solution would pass.",
            "docs/how-to/learn-in-your-own-world.md shows one.",
        )


def _tactics(language: Language) -> Tactics | None:
    return TACTICS[language]() if language in TACTICS else None


@lru_cache(maxsize=32)
def _read(file: Path, changed: int) -> Described:
    return read_description(file)
