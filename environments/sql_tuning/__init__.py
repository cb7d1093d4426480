"""A world of slow queries on a real database, SQLite in-process or PostgreSQL by URL."""

from environments.sql_tuning.records import (
    ColumnInfo,
    Judgement,
    Limits,
    Measured,
    Solution,
    TableInfo,
)
from environments.sql_tuning.schemas import SCHEMAS, Schema, find_schema
from environments.sql_tuning.tasks import FAMILIES, ROWS, Family, TuningTask, judge, story, tasks
from environments.sql_tuning.tuning import SqlTuning

__all__ = [
    "FAMILIES",
    "ROWS",
    "SCHEMAS",
    "ColumnInfo",
    "Family",
    "Judgement",
    "Limits",
    "Measured",
    "Schema",
    "Solution",
    "SqlTuning",
    "TableInfo",
    "TuningTask",
    "find_schema",
    "judge",
    "story",
    "tasks",
]
