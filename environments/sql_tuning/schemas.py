"""The schemas for query tuning, from `schemas.yaml`.

Each has one large table of facts and one small table of what the facts are about. The roles (`time`,
`group`, `status`, …) say what a column is for, so that a query's shape can be written once for all.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

from mneme.core.errors import NotFound
from mneme.environments.sql_tuning.analysis import Column

END = datetime(2025, 7, 1)
DAYS = 730

Role = Literal["id", "time", "group", "amount", "status", "channel", "region", "code", "number", "note"]
EntityRole = Literal["id", "name", "segment", "city"]

# The shares by which the values of `statuses` and `channels` are drawn, commonest first.
STATUS_SHARES = (0.80, 0.12, 0.05, 0.02, 0.01)
CHANNEL_SHARES = (0.45, 0.25, 0.15, 0.08, 0.05, 0.02)
REGIONS = 24
SEGMENTS = 40
MEDIAN_AMOUNT = 4_000
AMOUNT_SPREAD = 1.0  # of the amount's logarithm


class Schema(BaseModel):
    """One business: the names of its tables and columns, by role, and the words of its values."""

    model_config = ConfigDict(frozen=True)

    name: str
    subject: str
    fact: str
    entity: str
    columns: Mapping[Role, str]
    entity_columns: Mapping[EntityRole, str]
    statuses: tuple[str, str, str, str, str]
    channels: tuple[str, str, str, str, str, str]
    entities: int
    epoch: bool = False
    in_order: bool = True

    def tables(self) -> dict[str, dict[str, str]]:
        """Give each table's columns with their types, the key first."""
        numbers = {"id", "group", "amount", *(["time"] if self.epoch else [])}
        return {
            table: {name: "INTEGER" if role in numbers else "TEXT" for role, name in columns.items()}
            for table, columns in ((self.fact, self.columns), (self.entity, self.entity_columns))
        }

    @property
    def time(self) -> Column:
        """Give the column of the facts' times."""
        return Column(table=self.fact, column=self.columns["time"])

    def moment(self, days_before_end: float) -> str:
        """Write a time as this schema's queries do: a quoted ISO text, or seconds since 1970."""
        at = END - timedelta(days=days_before_end)
        if self.epoch:
            return str(int((at - datetime(1970, 1, 1)).total_seconds()))
        return f"'{at:%Y-%m-%d %H:%M:%S}'"

    def date(self, days_before_end: float) -> str:
        """Write the day of a time: an ISO date, or the number of days since 1970."""
        moment = self.moment(days_before_end)
        return str(int(moment) // 86_400) if self.epoch else moment[1:11]


def find_schema(name: str) -> Schema:
    """Give a schema by its name."""
    if name not in SCHEMAS:
        raise NotFound(f"There is no schema {name!r}.", hint=f"There are {', '.join(SCHEMAS)}.")
    return SCHEMAS[name]


_FILE = Path(__file__).with_name("schemas.yaml")
SCHEMAS: Mapping[str, Schema] = {
    name: Schema(name=name, **said)
    for name, said in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items()
}
