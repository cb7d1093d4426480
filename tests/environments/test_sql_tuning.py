"""The query-tuning world: what it refuses, and what it measures."""

import threading
from collections.abc import Iterator

import pytest

from mneme.core.errors import BadInput, NotFound, StorageFailure
from mneme.environments.sql_tuning.generating import draw, find_schema
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.tasks import TuningTask, tasks
from mneme.environments.sql_tuning.tuning import SqlTuning
from mneme.environments.worlds import Solution, Task, find_world
from tests.doubles.sql_tuning import FEW, on_postgres

QUERY = "SELECT user_id, COUNT(*) AS total FROM user_events WHERE duration_ms > 9000 GROUP BY user_id"


@pytest.fixture
def small() -> Iterator[SqlTuning]:
    yield SqlTuning.of(_events(QUERY), rows=FEW, limits=Limits(rows=1_000))


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Iterator[SqlTuning]:
    if request.param == "sqlite":
        yield SqlTuning.of(_events(QUERY), rows=FEW, limits=Limits(rows=1_000))
        return
    yield on_postgres(request.getfixturevalue("postgres_url"), _own(QUERY), FEW, limits=Limits(rows=1_000))


def _events(query: str) -> TuningTask:
    return TuningTask(id="events", description="", seed=1, query=query)


def _own(query: str) -> TuningTask:
    return TuningTask(id="own", description="", query=query, tables=["user_events", "users"])


class TestRefusals:
    """Whatever a solution holds, the answer is a `Measured` that says why it failed."""

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("SELEC 1", "parsed"),
            (" -- nothing", "0 statements"),
            ("SELECT 1; SELECT 2", "2 statements"),
            ("DELETE FROM user_events", "DELETE"),
            ("INSERT INTO users VALUES (1, 'a', 'b', 'c')", "INSERT"),
            ("WITH gone AS (DELETE FROM users RETURNING *) SELECT * FROM gone", "DELETE"),
            ("SELECT * INTO other FROM users", "INTO"),
            ("DROP TABLE users", "DROP"),
            ("SELECT * FROM strangers", "no table"),
            ("SELECT * FROM sqlite_master", "no table"),
            ("SELECT * FROM pg_catalog.pg_authid", "no table"),
            ("SELECT load_extension('/tmp/x.so')", "load_extension"),
            ("SELECT readfile('/etc/passwd')", "readfile"),
            ("SELECT * FROM readfile('/etc/passwd')", "readfile"),
            ("SELECT pg_read_file('/etc/passwd')", "pg_read_file"),
            ("SELECT pg_sleep(60)", "pg_sleep"),
            ("SELECT printf('%.*c', 900000000, 'x')", "function"),
            ("SELECT REPEAT('x', 900000000)", "repeat"),
            ("SELECT LPAD('x', 900000000)", "pad"),
            ("SELECT 1" + " + 1" * 6_000, "characters"),
            ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "nested"),
        ],
    )
    def test_query(self, either: SqlTuning, query: str, said: str) -> None:
        measured = either.run(Solution(query=query))
        assert said in measured.refused
        assert not measured.correct
        assert measured.speed_up == 0

    @pytest.mark.parametrize(
        "statement",
        [
            "ATTACH DATABASE '/tmp/other.db' AS other",
            "PRAGMA writable_schema = 1",
            "VACUUM INTO '/tmp/other.db'",
            "CREATE TABLE mine (a INTEGER)",
            "CREATE VIEW mine AS SELECT 1",
            "CREATE TRIGGER mine AFTER INSERT ON users BEGIN DELETE FROM users; END",
            "COPY users TO '/tmp/users.csv'",
            "SET statement_timeout = 0",
            "UPDATE users SET user_name = 'x'",
            "SELECT 1",
            "CREATE INDEX i ON strangers (a)",
            "CREATE INDEX i ON users (load_extension('/tmp/x.so'))",
            "CREATE INDEX i ON users (user_id); DROP TABLE users",
        ],
    )
    def test_preparation(self, either: SqlTuning, statement: str) -> None:
        assert either.run(Solution(statements=[statement])).refused

    def test_sqlite_refuses_by_itself_what_the_parser_would_let_through(self, small: SqlTuning) -> None:
        with small.database.copy(small.limits) as copy:
            for sql in ("SELECT sql FROM sqlite_master", "PRAGMA table_list", "DELETE FROM users"):
                with pytest.raises(Exception, match=r"may not|may be"):
                    copy.ask(sql)
            with pytest.raises(Exception, match=r"written|may not"):
                copy.prepare("UPDATE users SET user_name = 'x'")

    def test_endless_recursion_is_stopped_in_time(self, either: SqlTuning) -> None:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n"
        either.limits = Limits(seconds=0.5)
        assert "longer than 0.5 s: WITH RECURSIVE n(x)" in either.run(Solution(query=endless)).error

    def test_a_result_of_millions_of_rows_is_stopped(self, either: SqlTuning) -> None:
        measured = either.run(Solution(query="SELECT a.event_id FROM user_events a, user_events b"))
        assert "more than 1000 rows" in measured.error

    def test_a_huge_result_is_stopped(self) -> None:
        env = SqlTuning.of(_events(QUERY), rows=FEW, limits=Limits(characters=10_000))
        assert "characters" in env.run(Solution(query="SELECT payload FROM user_events")).error

    def test_a_blown_up_text_is_an_error(self, small: SqlTuning) -> None:
        assert small.run(Solution(query="SELECT hex(zeroblob(900000000))")).refused
        grown = "WITH RECURSIVE n(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM n) SELECT LENGTH(x) FROM n"
        assert "too big" in small.run(Solution(query=grown)).error

    def test_many_statements_are_refused(self, small: SqlTuning) -> None:
        many = [f"CREATE INDEX i{n} ON users (user_name)" for n in range(9)]
        assert "9 statements" in small.run(Solution(statements=many)).refused

    def test_an_error_of_the_database_is_told(self, either: SqlTuning) -> None:
        twice = ["CREATE INDEX i ON users (user_name)"] * 2
        assert "already exists" in either.run(Solution(statements=twice)).error
        assert "nowhere" in either.run(Solution(query="SELECT nowhere FROM users")).error

    def test_unknown_schema_and_bad_numbers(self) -> None:
        with pytest.raises(NotFound, match="nonsense"):
            SqlTuning.of(TuningTask(id="t", description="", schema_name="nonsense"))
        with pytest.raises(BadInput, match="at least one row"):
            SqlTuning.of(_events(QUERY), rows=0)
        with pytest.raises(BadInput, match="nonsense"):
            tasks(1, 3, ["nonsense"])  # type: ignore[list-item]

    def test_no_server(self) -> None:
        pytest.importorskip("psycopg")
        with pytest.raises(StorageFailure, match="does not answer"):
            SqlTuning.of(_own(QUERY).model_copy(update={"database": "postgresql://localhost:1/none"}))

    def test_a_server_that_goes_away(self, postgres_url: str) -> None:
        psycopg = pytest.importorskip("psycopg")
        env = on_postgres(postgres_url, _own(QUERY), 50)
        with pytest.raises(StorageFailure, match="no longer answers"), env.database.copy(env.limits) as copy:
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            copy.size()
        assert env.run(Solution()).correct, "it comes back"

    def test_texts_that_no_database_takes(self, either: SqlTuning) -> None:
        for query in ("SELECT '\ud800'", "SELECT ?", "SELECT 'a\0b' AS x"):
            measured = either.run(Solution(query=query))
            assert measured.error or measured.refused
            assert not measured.correct

    def test_a_comment_is_no_second_statement(self, either: SqlTuning) -> None:
        assert either.run(Solution(query=f"{QUERY}; -- as before")).correct

    def test_a_plan_of_nonsense_is_told(self, either: SqlTuning) -> None:
        assert either.explain("SELEC 1").startswith("No plan")
        assert "user_events" in either.explain()


class TestMeasuring:
    def test_a_solution_leaves_nothing_behind(self, either: SqlTuning) -> None:
        index = Solution(statements=["CREATE INDEX i ON user_events (duration_ms, user_id)"])
        first, second = either.run(index), either.run(index)
        assert first.correct
        assert second.correct
        assert first.index_bytes == second.index_bytes > 0
        assert either.schema().count("no indexes") == len(either.schema().splitlines())

    def test_the_index_is_in_the_plan(self, small: SqlTuning) -> None:
        measured = small.run(Solution(statements=["CREATE INDEX fine ON user_events (duration_ms, user_id)"]))
        assert "fine" in measured.plan_after
        assert "fine" not in measured.plan_before
        assert 0 < measured.index_bytes < 0.5 * measured.table_bytes

    def test_statistics_are_no_index(self, either: SqlTuning) -> None:
        measured = either.run(Solution(statements=["ANALYZE"]))
        assert measured.correct
        assert measured.index_bytes == 0

    def test_explain_in_a_solution_is_harmless(self, small: SqlTuning) -> None:
        asked = Solution(
            statements=[f"EXPLAIN QUERY PLAN {QUERY}", "CREATE INDEX i ON user_events (duration_ms)"],
            query=f"EXPLAIN ANALYZE {QUERY};",
        )
        assert small.run(asked).correct

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            (QUERY.replace("9000", "9500"), "the original"),
            (QUERY.replace("COUNT(*)", "COUNT(*) + 1"), "differ"),
            (f"{QUERY} LIMIT 3", "3 rows"),
            (QUERY.replace("user_id, COUNT", "COUNT").replace("total FROM", "total, user_id FROM"), "differ"),
        ],
    )
    def test_another_result_is_wrong(self, either: SqlTuning, query: str, said: str) -> None:
        measured = either.run(Solution(query=query))
        assert said in measured.error
        assert not measured.correct
        assert measured.speed_up == 0

    def test_order_counts_where_the_query_orders(self) -> None:
        ordered = f"{QUERY} ORDER BY total DESC"
        env = SqlTuning.of(_events(ordered), rows=FEW)
        assert env.run(Solution(query=f"{QUERY} ORDER BY total DESC, user_id DESC")).correct
        assert "another order" in env.run(Solution(query=f"{QUERY} ORDER BY total")).error
        env = SqlTuning.of(_events(QUERY), rows=FEW)
        assert env.run(Solution(query=ordered)).correct

    def test_same_seed_same_rows(self) -> None:
        schema = find_schema("web")

        def drawn(seed: int) -> dict[str, list[tuple[object, ...]]]:
            return {table: list(rows) for table, rows in draw(schema, seed, 500).items()}

        assert drawn(3) == drawn(3)
        assert drawn(3) != drawn(4)
        assert [len(rows) for rows in drawn(3).values()] == [500, schema.entities]

    def test_the_tables_are_described(self, either: SqlTuning) -> None:
        events, users = either.schema().splitlines()
        assert events.startswith(f"user_events: {FEW} rows; ") and users.startswith("users: 500 rows; ")
        assert "user_id INTEGER (500 distinct)" in users and users.endswith("; no indexes")

    def test_threads_take_turns(self, small: SqlTuning) -> None:
        found = []
        index = Solution(statements=["CREATE INDEX i ON user_events (duration_ms)"])
        threads = [threading.Thread(target=lambda: found.append(small.run(index).correct)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4

    @pytest.mark.parametrize(
        ("filtered", "most"),
        [
            ("duration_ms > 0", True),
            ("duration_ms > 9000", False),
            ("duration_ms > nowhere(1)", False),
            ("duration_ms > 0 AND user_id < 0", False),
            ("user_id > 10 AND user_id < 20", False),
        ],
    )
    def test_a_query_whose_filters_keep_most_rows_says_so(self, filtered: str, most: bool) -> None:
        query = f"SELECT user_id, COUNT(*) FROM user_events WHERE {filtered} GROUP BY user_id"
        given = {"query": query, "schema_name": "events", "rows": FEW}
        world = find_world("sql_tuning").open(Task(given=given))
        assert ("filters keep most rows" in world.features) == most
        assert "filters keep most rows" not in world.general
        assert world.applies("range filter; grouping; filters keep most rows") is most

    def test_without_a_query_there_is_nothing_to_measure(self) -> None:
        env = SqlTuning.of(_events(""), rows=FEW)
        with pytest.raises(BadInput, match="no query"):
            env.run(Solution())
