"""What a world is told of a task."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict


class Told(TypedDict, total=False):
    """What a task tells its world: the command line, the graphs and the worlds all read this declaration."""

    query: Annotated[
        str,
        Field(
            "",
            description="sql_tuning: the slow query, which is run and measured.",
            examples=["SELECT user_id, COUNT(*) FROM user_events GROUP BY user_id"],
        ),
    ]
    wanted_speed_up: Annotated[
        float,
        Field(2.0, ge=1, description="sql_tuning: how many times as fast is fast enough.", examples=[2.0]),
    ]
    index_budget: Annotated[
        float,
        Field(
            0.3,
            ge=0,
            description="sql_tuning: largest size of all new indexes, as a share of the tables'.",
            examples=[0.3],
        ),
    ]
    database: Annotated[
        str,
        Field(
            "",
            description="sql_tuning: an own database, a SQLite file or a postgresql:// address; only read.",
            examples=["/home/ada/shop.sqlite"],
        ),
    ]
    ddl: Annotated[
        str,
        Field(
            "",
            description="sql_tuning: CREATE TABLE statements of an own database, filled with made rows.",
            examples=["CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT)"],
        ),
    ]
    case: Annotated[
        str, Field("", description="A task of the world's own, by its id.", examples=["common-customers"])
    ]
    workspace: Annotated[
        str,
        Field(
            "",
            description="workspace: the folder whose files a solution may change, on a copy.",
            examples=["/home/ada/shop"],
        ),
    ]
    check: Annotated[
        str,
        Field(
            "",
            description="workspace: the command that must end with 0, run in the folder.",
            examples=["pytest -q"],
        ),
    ]
    metrics: Annotated[
        list[str],
        Field(
            [],
            description="workspace: what is to become better, as NAME:lower|higher:TIMES.",
            examples=[["cpu_seconds:lower:2"]],
        ),
    ]
    may_change: Annotated[
        list[str],
        Field([], description="workspace: patterns of the files that may change.", examples=[["src/*.py"]]),
    ]


class Task(BaseModel):
    """One task: its words, and what its world reads of it (a query, a folder, …)."""

    model_config = ConfigDict(frozen=True)

    id: str = "task"
    text: str = ""
    given: dict[str, Any] = Field({}, description="What the world reads, by name: `Told`, and what is set.")
    group: str = Field("", description="Of similar tasks, each group comes once before any comes again.")
