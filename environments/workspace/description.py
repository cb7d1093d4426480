"""Description of a world of files: the files that may change, the check, the metrics to improve.

In YAML::

    name: python_functions
    about: A Python function is slow.
    language: python                 # patterns that rules can carry out: python, shell or none
    may_change: ["solution.py"]
    check: python3 -m unittest -q    # must end with 0
    measure: python3 bench.py        # what is timed; where it is missing, the check is measured
    metrics:
      - {name: cpu_seconds, better: lower, wanted: 3}   # processor seconds; else a line `name=value`
    tasks:                           # they are similar tasks for disputes too
      - id: common-customers
        task: Find the customers of both shops faster.
        files: {solution.py: "…", bench.py: "…", test_solution.py: "…"}      # or: workspace: a folder
"""

from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput
from mneme.environments.workspace.confining import Bounds

Language = Literal["python", "shell", "none"]
CPU = "cpu_seconds"
DESCRIPTION_HINT = "docs/how-to/learn-in-your-own-world.md shows one."


class Part(BaseModel, frozen=True, extra="forbid"):
    """A part of a description, strict about its fields."""


class Aim(Part):
    """One metric: its better direction, and the factor of improvement that is wanted."""

    name: str = Field(pattern=r"^[A-Za-z_][\w.-]*$")
    better: Literal["lower", "higher"] = "lower"
    wanted: float = Field(0.0, ge=0, description="How many times as good as the baseline; 0: not asked for.")
    limit: float | None = Field(None, description="What the figure may not pass.")

    @classmethod
    def read(cls, text: str) -> "Aim":
        """Read `NAME:lower|higher:TIMES`. Raises BadInput."""
        name, _, rest = text.partition(":")
        better, _, wanted = rest.partition(":")
        try:
            # Without TIMES, a tenth better is wanted.
            return cls.model_validate({"name": name, "better": better or "lower", "wanted": wanted or 1.1})
        except ValidationError as wrong:
            raise BadInput(
                f"The metric {text!r} cannot be read: {wrong.errors()[0]['msg']}.",
                "Write it like cpu_seconds:lower:2, or accuracy:higher:1.1.",
            ) from wrong


class Held(Part):
    """Requirements on a solution."""

    may_change: list[str] = Field([], description="Patterns; none: every file but tests and settings.")
    setup: str = Field("", description="A command that makes further files, once, before anything else.")
    check: str = ""
    measure: str = ""
    start: str = Field(
        "",
        description="A command as long as the start of what is timed: subtracted. Known of pytest.",
    )
    same_output: bool = Field(False, description="What `measure` prints must be what it printed before.")
    metrics: list[Aim] = []
    runs: int = Field(
        5, ge=1, le=20, description="Runs of the original and a solution in turn, at most; the median counts."
    )
    bounds: Bounds = Bounds()


class CaseText(Part):
    """A task of a world."""

    id: str = Field(min_length=1)
    task: str = Field(min_length=1)
    files: dict[str, str] = {}
    workspace: str = Field("", description="A folder beside the YAML file, instead of files.")
    held: dict[str, object] = Field({}, description="What this task alone is held to; over the world's.")


class Described(Held):
    """A world of files with its tasks."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    about: str = ""
    noun: str = Field("", description="What its tasks are called; else by its language.")
    scope: str = Field("", description="What its lessons are about; else its language, else its name.")
    language: Language = "none"
    versions: dict[str, str] = Field({}, description="Versions of what it runs on, such as python: '3.12'.")
    tasks: list[CaseText] = []

    def held_for(self, case: CaseText | None) -> Held:
        """Return a task's requirements. Raises BadInput for an unknown field."""
        common = {name: getattr(self, name) for name in Held.model_fields}
        try:
            return Held.model_validate({**common, **(case.held if case else {})})
        except ValidationError as wrong:
            raise BadInput(f"{self.name}: {_first(wrong)}", DESCRIPTION_HINT) from wrong


def read_description(file: Path) -> Described:
    """Read a world's YAML file. Raises BadInput naming the field."""
    try:
        return Described.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except OSError as missing:
        raise BadInput(f"{file} cannot be read: {missing.strerror}.", DESCRIPTION_HINT) from missing
    except (yaml.YAMLError, UnicodeDecodeError) as wrong:
        raise BadInput(f"{file} is not YAML: {' '.join(str(wrong).split())}", DESCRIPTION_HINT) from wrong
    except ValidationError as wrong:
        raise BadInput(f"{file}: {_first(wrong)}", DESCRIPTION_HINT) from wrong


def _first(wrong: ValidationError) -> str:
    first = wrong.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}."
