"""Open a task of files: a folder that the task names, or one of a described world's own."""

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from mneme.core.errors import BadInput
from mneme.environments.workspace.changes import is_changeable
from mneme.environments.workspace.description import (
    DESCRIPTION_HINT,
    Aim,
    CaseText,
    Described,
    read_description,
)
from mneme.environments.workspace.template import template_of
from mneme.environments.workspace.world import FilesWorld, tactics
from mneme.environments.worlds import Task, WorldKind

DEFINED_NAME = re.compile(r"\b(?:def|class|function)\s+(\w+)|^\s*(\w+)\s*=[^=]", re.MULTILINE)


class WorkspaceKind(WorldKind):
    """Folders with a check command; `described` if a YAML file gives the requirements."""

    def __init__(self, described: Described | None = None, beside: Path | None = None) -> None:
        self._described, self._beside = described, beside or Path()
        self.name = described.name if described else "workspace"

    @property
    def vocabulary(self) -> str:  # type: ignore[override]
        """Return the names of the tactics and features of all languages."""
        return "\n".join(
            text for each in tactics().values() for text in (each.definition, *sorted(each.known_features))
        )

    def names(self, material: str) -> Sequence[str]:
        """Return the names that the files define: functions, classes, variables."""
        return sorted({name for found in DEFINED_NAME.findall(material) for name in found if name})

    @classmethod
    def of(cls, file: Path) -> "WorkspaceKind":
        """Return the kind that a YAML file describes. Raises BadInput."""
        state = file.stat().st_mtime_ns if file.is_file() else 0  # read again once it has changed
        return cls(_read(file, state), file.resolve().parent)

    def open(self, task: Task) -> FilesWorld:
        """Open a task by its `case`, or by `workspace` and `check`. Raises BadInput for what is missing."""
        described, case = self._described or _of_folder(task), self._case(task)
        held = described.held_for(case)
        if not held.check and not (held.measure and held.same_output):
            needed = "A world needs a `check`, or a `measure` with `same_output: true`"
            raise BadInput(f"{needed}; or every solution would pass.", DESCRIPTION_HINT)
        given = str(task.given.get("workspace") or "")
        folder = given or (str(self._beside / case.workspace) if case and case.workspace else "")
        files = case.files if case and not given else {}
        if not folder and not files:
            raise BadInput(f"The world {self.name} needs a task: --case or --workspace.", self._cases())
        template = template_of(folder, files, held, str(task.given.get("snapshot") or ""))
        language: str = described.language
        if not self._described:  # a folder's language is that of most files that may change
            texts = template.texts()
            endings = [Path(path).suffix for path in texts if is_changeable(path, texts, held.may_change)]
            counts = {name: endings.count(known.ending) for name, known in tactics().items()}
            commonest = max(counts, key=counts.__getitem__)
            language = commonest if counts[commonest] else "none"
        return FilesWorld(template, held, described, tactics().get(language))

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
        name = task.given.get("case")
        if not name or self._described is None:
            return None
        found = next((case for case in self._described.tasks if case.id == name), None)
        if found is None:
            raise BadInput(f"The world {self.name} has no task {name!r}.", self._cases())
        return found

    def _cases(self) -> str:
        cases = [case.id for case in self._described.tasks] if self._described else []
        return f"It has: {', '.join(cases)}." if cases else "It has no tasks of its own: give --workspace."


def _of_folder(task: Task) -> Described:
    """Describe the world of a task that names its own folder and check. Raises BadInput."""
    if not task.given.get("workspace") or not task.given.get("check"):
        raise BadInput("The world workspace needs a folder and a check.", "Give --workspace and --check.")
    return Described(
        name="workspace",
        check=str(task.given["check"]),
        may_change=task.given.get("may_change") or [],
        metrics=[Aim.read(each) for each in task.given.get("metrics") or []],
    )


@lru_cache(maxsize=32)
def _read(file: Path, changed: int) -> Described:
    return read_description(file)
