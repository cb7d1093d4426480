"""The input and output of query tuning, and how a statement of a solution can fail."""

from pathlib import Path
from textwrap import shorten
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field

SCHEMA_FILE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("schemas.yaml").read_text("utf-8"))
"""Content of `schemas.yaml` by schema; `generating.py`, slow to import, makes tables from it."""
SCHEMA_NAMES: list[Any] = [*SCHEMA_FILE]


class Limits(BaseModel):
    """Limits of a statement, and how often a query is timed."""

    seconds: float = Field(5.0, gt=0, description="Time for each statement.")
    baseline_seconds: float = Field(30.0, gt=0, description="Time for the original query.")
    rows: int = Field(100_000, gt=0, description="Rows of a result.")
    characters: int = Field(20_000_000, gt=0, description="Characters of a result.")
    statements: int = Field(8, gt=0, description="Preparatory statements of a solution.")
    runs: int = Field(
        15, ge=1, description="Timed pairs of runs, original and solution, at most; the median pair counts."
    )
    enough: float = Field(
        0.5, gt=0, description="Seconds after which three pairs are enough; after twice that, fewer."
    )


class Measurement(BaseModel):
    """The measured result of a solution; a refusal or an error is a failure with a message."""

    correct: bool = False
    baseline_seconds: float = Field(0.0, description="Of the pair of runs whose speed-up is the median.")
    solution_seconds: float = Field(0.0, description="Of the same pair.")
    speed_up: float = Field(0.0, description="Baseline by solution; 0 where the solution failed.")
    plan_before: str = ""
    plan_after: str = ""
    index_bytes: int = 0
    table_bytes: int = 0
    rows: int = Field(0, description="Rows of the original's result.")
    stopped: bool = Field(False, description="Whether the original was stopped: it takes longer yet.")
    proven_on: int = Field(0, description="Rows of the original's result on rows made to tell them apart.")
    clock: Literal["cpu", "wall"] = "cpu"
    refused: str = Field("", description="Why a statement was not let through.")
    error: str = Field("", description="What the database said of a statement, or how the results differ.")


Kind = Literal["whole", "real", "text", "other"]
Cell = object
Row = tuple[Cell, ...]


class ColumnFacts(BaseModel):
    """The values of a column: its type, NULL or not, and whether it numbers its rows."""

    name: str
    kind: Kind
    nullable: bool = True
    key: bool = False
    is_time: bool = False


MAX_QUOTED_CHARS = 120
"""Characters of a statement that a failure quotes."""


class Refused(Exception):
    """A statement is not allowed; the message says why."""


class Stopped(Exception):
    """A statement was stopped; the message names the limit."""


class Failed(Exception):
    """A statement failed; the message is the database's."""


class Late(Stopped):
    """A statement reached its time limit: an original that does so can still be beaten."""

    def __init__(self, sql: str, seconds: float) -> None:
        said = shorten(sql, MAX_QUOTED_CHARS, placeholder=" …")
        super().__init__(f"Stopped, since it ran longer than {seconds:.3g} s: {said}")
