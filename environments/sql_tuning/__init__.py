"""Query tuning: slow queries on a real database, SQLite in-process or PostgreSQL by URL."""

from mneme.environments.sql_tuning.generating import SCHEMAS
from mneme.environments.sql_tuning.tasks import TuningTask, story, tasks
from mneme.environments.sql_tuning.tuning import SqlTuning

__all__ = ["SCHEMAS", "SqlTuning", "TuningTask", "story", "tasks"]
