"""A database of the user's own: three ordinary queries, never written to, and what only seems right falls."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mneme.core.errors import BadInput
from mneme.environments.worlds import Solution, Task, World, find_world
from mneme.graphs.compound_learning import builder
from mneme.nodes.learning.context import LearningContext
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger

ROLES: Any = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
DDL = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), amount REAL, placed_on TEXT
);
"""
JOIN = (
    "SELECT c.name, SUM(o.amount) AS total FROM customers c JOIN orders o ON o.customer_id = c.id "
    "WHERE c.city = 'city-7' GROUP BY c.id, c.name ORDER BY total DESC"
)
LIKE = "SELECT id, name FROM customers WHERE name LIKE 'ab%' ORDER BY id"
CORRELATED = (
    "SELECT c.id, c.name, (SELECT MAX(o.amount) FROM orders o WHERE o.customer_id = c.id) AS largest "
    "FROM customers c WHERE c.id <= 40 ORDER BY c.id"
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    letters = "abcdefghij"
    with closing(sqlite3.connect(file)) as made:
        made.executescript(DDL)
        made.executemany(
            "INSERT INTO customers VALUES (?, ?, ?)",
            (
                (n, f"{letters[n % 10]}{letters[n // 10 % 10]}-{n}", f"city-{n % 50}" if n % 9 else None)
                for n in range(1, 8_001)
            ),
        )
        made.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?)",
            ((n, n * 7919 % 8_000 + 1, n % 977 / 4, f"2025-{n % 12 + 1:02d}-01") for n in range(1, 20_001)),
        )
        made.commit()
    return file


def opened(**given: Any) -> World:
    return find_world("sql_tuning").open(Task(given=given))


def state_of(file: Path) -> tuple[str, list[str]]:
    """Return what a file holds, and what lies beside it."""
    return hashlib.sha256(file.read_bytes()).hexdigest(), [each.name for each in file.parent.iterdir()]


def context() -> LearningContext:
    return LearningContext(**ROLES, team="shop", environment="sql_tuning")


@pytest.mark.parametrize("query", [JOIN, LIKE, CORRELATED], ids=["join", "like", "correlated"])
async def test_three_queries_of_a_user_are_solved_by_rules_and_the_file_stays(
    query: str, shop: Path, edge_ledger: Ledger
) -> None:
    before = state_of(shop)
    graph = builder.compile(store=LedgerStore(edge_ledger))
    given: Any = {"task": "This query is slow.", "task_id": "q1", "query": query, "database": str(shop)}
    result = await graph.ainvoke(given | {"index_budget": 0.6}, context=context())
    assert result["packet"]["solved"], result["packet"]["objections"]
    assert result["packet"]["judged_by"] == "environment"
    assert state_of(shop) == before
    cards = await KnowledgeCards(edge_ledger, "shop").records.list()
    assert all(card.scope == "sql_tuning" for card in cards)


async def test_a_budget_of_nothing_lets_no_index_pass(shop: Path, edge_ledger: Ledger) -> None:
    graph = builder.compile(store=LedgerStore(edge_ledger))
    given: Any = {"task": "This query is slow.", "task_id": "q1", "query": JOIN, "database": str(shop)}
    result = await graph.ainvoke(given | {"index_budget": 0.0}, context=context())
    assert not result["packet"]["solved"]
    assert "0% is free" in str(result["packet"])


def test_what_only_fits_the_data_falls(shop: Path) -> None:
    ranged = "SELECT id, name FROM customers WHERE name >= 'ab' AND name < 'ac' ORDER BY id"
    tried = opened(query=LIKE, database=str(shop)).attempt(Solution(query=ranged), quick=True)
    assert not tried.correct and "made to tell them apart" in tried.problem
    null = "SELECT id FROM customers WHERE city <> 'city-1' OR city IS NULL"
    asked = "SELECT id FROM customers WHERE city <> 'city-1'"
    assert not opened(query=asked, database=str(shop)).attempt(Solution(query=null), quick=True).correct
    nothing = opened(query="SELECT id FROM orders WHERE amount < -1 AND amount > 1", database=str(shop))
    index = Solution(statements=["CREATE INDEX i ON orders (amount)"])
    assert "proves nothing" in nothing.attempt(index, quick=True).problem


def test_a_query_on_a_view_is_measured(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "shop.sqlite"
    file.write_bytes(shop.read_bytes())
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE VIEW dear AS SELECT id, customer_id FROM orders WHERE amount > 9")
    world = opened(query="SELECT COUNT(*) AS n FROM dear WHERE customer_id = 7", database=str(file))
    tried = world.attempt(Solution(statements=["CREATE INDEX i ON orders (customer_id, amount)"]), quick=True)
    assert tried.correct and tried.gain > 2, tried


def test_a_schema_without_data_is_filled(tmp_path: Path) -> None:
    world = opened(query=JOIN, ddl=DDL, rows=5_000)
    schema = next(look for look in world.looks() if look.__name__ == "schema")
    assert "orders: 5000 rows" in schema() and "customers: 100 rows" in schema()
    tried = world.attempt(world.carry_out("COVERING INDEX (join)"), quick=True)
    assert tried.correct, tried
    with pytest.raises(BadInput, match="cannot be made"):
        opened(query=JOIN, ddl="CREATE TABEL x (a)")
    with pytest.raises(BadInput, match="cannot be made"):
        opened(query=JOIN, ddl=f"ATTACH '{tmp_path}/other.db' AS other")
    assert not list(tmp_path.iterdir())


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no database"):
        opened(query=JOIN, database=str(tmp_path / "none.sqlite"))
    (tmp_path / "text.sqlite").write_text("no database at all, but long enough to be looked at " * 50)
    with pytest.raises(BadInput, match="cannot be read"):
        opened(query=JOIN, database=str(tmp_path / "text.sqlite"))
    world = opened(query="select 1", ddl=DDL)
    assert world.features == [] and world.attempt(Solution(), quick=True).correct


def test_tables_of_postgres_are_only_read(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as made:
        made.execute("DROP TABLE IF EXISTS own_orders")
        made.execute("CREATE TABLE own_orders (id bigint PRIMARY KEY, city text, amount numeric)")
        made.execute(
            "INSERT INTO own_orders SELECT n, 'city-' || n % 900, n % 97 FROM generate_series(1, 20000) n"
        )
        made.execute("ANALYZE own_orders")
        query = "SELECT SUM(amount) AS total FROM own_orders WHERE city = 'city-5'"
        world = opened(query=query, database=postgres_url)
        tried = world.attempt(world.carry_out("INDEX (equality)"), quick=True)
        assert tried.correct and "Index" in tried.evidence, tried
        assert world.attempt(Solution(statements=["ANALYZE"]), quick=True).correct
        refused = world.attempt(Solution(query="SELECT SUM(amount) AS total FROM public.own_orders"))
        assert not refused.correct
        indexes = made.execute("SELECT count(*) FROM pg_indexes WHERE tablename = 'own_orders'").fetchone()
        made.execute("DROP TABLE own_orders")
    assert indexes == (1,)


def test_the_tables_may_be_empty(tmp_path: Path) -> None:
    file = tmp_path / "empty.sqlite"
    with closing(sqlite3.connect(file)) as made:
        made.executescript("CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT)")
    world = opened(query="SELECT city FROM orders WHERE city = 'Rome'", database=str(file))
    assert "filters keep most rows" not in world.features
    assert world.attempt(Solution(statements=["CREATE INDEX i ON orders (city)"])).correct
