"""The schemas for query tuning: eight businesses with different names for tables and columns.

Each has one large table of facts and one small table of what the facts are about. The roles (`time`,
`group`, `status`, …) say what a column is for, so that a query's shape can be written once for all.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import NotFound

END = datetime(2025, 7, 1)
DAYS = 730

Role = Literal["id", "time", "group", "amount", "status", "channel", "region", "code", "number", "note"]
EntityRole = Literal["id", "name", "segment", "city"]
Type = Literal["INTEGER", "TEXT"]

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

    def tables(self) -> dict[str, dict[str, Type]]:
        """Give each table's columns with their types, the key first."""
        fact = {name: self._type(role) for role, name in self.columns.items()}
        entity: dict[str, Type] = {
            name: "INTEGER" if role == "id" else "TEXT" for role, name in self.entity_columns.items()
        }
        return {self.fact: fact, self.entity: entity}

    def moment(self, days_before_end: float) -> str:
        """Write a time as this schema's queries do: a quoted ISO text, or seconds since 1970."""
        at = END - timedelta(days=days_before_end)
        if self.epoch:
            return str(int((at - datetime(1970, 1, 1)).total_seconds()))
        return f"'{at:%Y-%m-%d %H:%M:%S}'"

    def _type(self, role: Role) -> Type:
        if role in ("id", "group", "amount") or (role == "time" and self.epoch):
            return "INTEGER"
        return "TEXT"


def find_schema(name: str) -> Schema:
    """Give a schema by its name."""
    if name not in SCHEMAS:
        raise NotFound(f"There is no schema {name!r}.", hint=f"There are {', '.join(SCHEMAS)}.")
    return SCHEMAS[name]


def _columns(*names: str) -> dict[Role, str]:
    roles: tuple[Role, ...] = (
        "id",
        "time",
        "group",
        "amount",
        "status",
        "channel",
        "region",
        "code",
        "number",
        "note",
    )
    return dict(zip(roles, names, strict=True))


def _entity_columns(*names: str) -> dict[EntityRole, str]:
    roles: tuple[EntityRole, ...] = ("id", "name", "segment", "city")
    return dict(zip(roles, names, strict=True))


_ALL = (
    Schema(
        name="events",
        subject="user activity",
        fact="user_events",
        entity="users",
        columns=_columns(
            "event_id",
            "event_time",
            "user_id",
            "duration_ms",
            "outcome",
            "device",
            "country",
            "request_token",
            "build",
            "payload",
        ),
        entity_columns=_entity_columns("user_id", "user_name", "cohort", "home_city"),
        statuses=("ok", "slow", "retried", "failed", "aborted"),
        channels=("phone", "laptop", "tablet", "television", "watch", "car"),
        entities=500,
    ),
    Schema(
        name="sales",
        subject="sales by product",
        fact="sales",
        entity="products",
        columns=_columns(
            "sale_id",
            "sale_date",
            "product_id",
            "price_cents",
            "state",
            "shop_kind",
            "district",
            "receipt",
            "till_number",
            "remark",
        ),
        entity_columns=_entity_columns("product_id", "product_name", "category", "made_in"),
        statuses=("paid", "returned", "open", "disputed", "void"),
        channels=("market", "online", "corner", "station", "airport", "kiosk"),
        entities=400,
        in_order=False,
    ),
    Schema(
        name="transactions",
        subject="bank transactions",
        fact="transactions",
        entity="accounts",
        columns=_columns(
            "transaction_id",
            "transaction_date",
            "account_id",
            "amount_cents",
            "result",
            "method",
            "branch",
            "reference",
            "terminal",
            "purpose",
        ),
        entity_columns=_entity_columns("account_id", "holder", "product_line", "town"),
        statuses=("settled", "pending", "reversed", "declined", "frozen"),
        channels=("card", "transfer", "debit", "cash", "cheque", "giro"),
        entities=800,
        in_order=False,
    ),
    Schema(
        name="web",
        subject="page views",
        fact="page_views",
        entity="pages",
        columns=_columns(
            "view_id",
            "viewed_at",
            "page_id",
            "bytes_sent",
            "cache_state",
            "browser",
            "country_code",
            "session_key",
            "response_code",
            "user_agent",
        ),
        entity_columns=_entity_columns("page_id", "page_title", "site_section", "author_city"),
        statuses=("hit", "miss", "stale", "bypass", "error"),
        channels=("chrome", "safari", "firefox", "edge", "opera", "lynx"),
        entities=600,
        epoch=True,
    ),
    Schema(
        name="orders",
        subject="customer orders",
        fact="orders",
        entity="customers",
        columns=_columns(
            "order_id",
            "ordered_at",
            "customer_id",
            "total_cents",
            "order_status",
            "payment",
            "state_code",
            "order_code",
            "voucher",
            "comment",
        ),
        entity_columns=_entity_columns("customer_id", "customer_name", "tier", "city"),
        statuses=("delivered", "shipped", "packed", "refunded", "lost"),
        channels=("invoice", "wallet", "credit", "prepaid", "points", "coins"),
        entities=900,
        in_order=False,
    ),
    Schema(
        name="telemetry",
        subject="sensor readings",
        fact="readings",
        entity="sensors",
        columns=_columns(
            "reading_id",
            "read_at",
            "sensor_id",
            "millivolts",
            "quality",
            "protocol",
            "zone",
            "frame",
            "firmware",
            "raw",
        ),
        entity_columns=_entity_columns("sensor_id", "sensor_label", "model", "site"),
        statuses=("good", "drifting", "noisy", "stuck", "offline"),
        channels=("mqtt", "modbus", "lora", "zigbee", "opcua", "serial"),
        entities=300,
        epoch=True,
        in_order=False,
    ),
    Schema(
        name="support",
        subject="support tickets",
        fact="tickets",
        entity="agents",
        columns=_columns(
            "ticket_id",
            "opened_at",
            "agent_id",
            "handling_seconds",
            "stage",
            "source",
            "language",
            "ticket_key",
            "queue_number",
            "summary",
        ),
        entity_columns=_entity_columns("agent_id", "agent_name", "team", "office"),
        statuses=("closed", "waiting", "reopened", "escalated", "urgent"),
        channels=("mail", "chat", "phone", "form", "forum", "letter"),
        entities=250,
        in_order=False,
    ),
    Schema(
        name="logistics",
        subject="shipments",
        fact="shipments",
        entity="carriers",
        columns=_columns(
            "shipment_id",
            "dispatched_at",
            "carrier_id",
            "weight_grams",
            "progress",
            "service",
            "hub",
            "tracking_code",
            "dock_number",
            "instructions",
        ),
        entity_columns=_entity_columns("carrier_id", "carrier_name", "fleet", "depot"),
        statuses=("arrived", "moving", "delayed", "damaged", "missing"),
        channels=("road", "rail", "sea", "air", "bike", "drone"),
        entities=300,
        epoch=True,
        in_order=False,
    ),
)
SCHEMAS: Mapping[str, Schema] = {schema.name: schema for schema in _ALL}
