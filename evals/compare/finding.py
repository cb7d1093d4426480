"""Find a memory and a family by name: ours, a rival, an entry point, or a class of the user's own."""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name

from mneme.core.errors import BadInput
from mneme.evals.compare.code import ON_CODE
from mneme.evals.compare.conversation import CONVERSATION_FAMILY
from mneme.evals.compare.decision import DECISION
from mneme.evals.compare.fog import FOG
from mneme.evals.compare.home import HOME_FAMILY
from mneme.evals.compare.memories import OWN_MEMORIES
from mneme.evals.compare.memory import Family, Memory, Place
from mneme.evals.compare.public import of_folder
from mneme.evals.compare.rivals import RIVAL_MEMORIES
from mneme.evals.compare.work import WORK_FAMILY
from mneme.evals.report import file_digest

MEMORY_PLUGINS = "mneme.memories"
NAMED_MEMORIES = {**OWN_MEMORIES, **RIVAL_MEMORIES}
COURSE_FAMILIES: dict[str, Family] = {
    each.name: each for each in (CONVERSATION_FAMILY, WORK_FAMILY, *ON_CODE, HOME_FAMILY, FOG, DECISION)
}


def families_with(data: Path | None) -> Mapping[str, Family]:
    """Return the kinds of work that there are, with those of the user's own files. Raises BadInput."""
    return {**COURSE_FAMILIES, **of_folder(data)} if data else COURSE_FAMILIES


def code_of(name: str) -> str:
    """Return the digest of the file of a user's own memory; empty for another's."""
    file = inspect.getsourcefile(_own(name)) if name not in NAMED_MEMORIES and ":" in name else None  # type: ignore[arg-type]
    return file_digest(Path(file)) if file else ""


def memory_named(name: str) -> Callable[[Place], Memory]:
    """Return the factory of a memory: by a name, an entry point, or `module:Class`. Raises BadInput."""
    if name in NAMED_MEMORIES:
        return NAMED_MEMORIES[name]
    points = entry_points(group=MEMORY_PLUGINS)
    if name in points.names:
        made: object = points[name].load()
    elif ":" in name:
        made = _own(name)
    else:
        there = ", ".join([*NAMED_MEMORIES, *sorted(points.names)])
        raise BadInput(
            f"There is no memory {name!r}.", f"There are: {there}. Your own: --memory module:Class."
        )
    missing = [
        each for each in ("observe", "recall", "end_of_task") if not callable(getattr(made, each, None))
    ]
    if missing or not callable(made):
        raise BadInput(
            f"{name} has no {', '.join(missing) or 'class'}.", "examples/compare_memory.py is a memory."
        )
    return made


def _own(name: str) -> object:
    """Load a class of a module that is in the current folder, or installed."""
    here = str(Path.cwd())  # a console script has its own folder on the path, not the current one
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        wrong = f"{name} cannot be loaded: {error}."
        raise BadInput(wrong, "Write it as module:Class, from the folder that the module is in.") from error
