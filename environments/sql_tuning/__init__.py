"""Query tuning: slow queries on a real database, SQLite in-process or PostgreSQL by URL."""

from mneme.environments.sql_tuning.analysis import Structure, analyse
from mneme.environments.sql_tuning.patterns import (
    DoesNotApply,
    canonical,
    describe,
    instantiate,
    read_pattern,
    structure_of,
)
from mneme.environments.sql_tuning.records import ColumnInfo, Judgement, Limits, Measured, Solution, TableInfo
from mneme.environments.sql_tuning.schemas import SCHEMAS, Schema, find_schema
from mneme.environments.sql_tuning.tasks import FAMILIES, ROWS, Family, TuningTask, judge, story, tasks
from mneme.environments.sql_tuning.tuning import SqlTuning

__all__ = [
    "FAMILIES",
    "ROWS",
    "SCHEMAS",
    "ColumnInfo",
    "DoesNotApply",
    "Family",
    "Judgement",
    "Limits",
    "Measured",
    "Schema",
    "Solution",
    "SqlTuning",
    "Structure",
    "TableInfo",
    "TuningTask",
    "analyse",
    "canonical",
    "describe",
    "find_schema",
    "instantiate",
    "judge",
    "read_pattern",
    "story",
    "structure_of",
    "tasks",
]
