"""The query-tuning world: what it refuses, what it measures, and that its tasks can be solved."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from mneme.core.errors import BadInput, NotFound, StorageFailure
from mneme.environments.sql_tuning.analysis import analyse
from mneme.environments.sql_tuning.generating import draw, find_schema
from mneme.environments.sql_tuning.patterns import (
    REMEDIES,
    DoesNotApply,
    canonical,
    describe,
    instantiate,
    read_pattern,
)
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.sqlite import SqliteCopy
from mneme.environments.sql_tuning.tasks import FAMILIES, Family, TuningTask, judge, story, tasks
from mneme.environments.sql_tuning.tuning import SqlTuning
from mneme.environments.worlds import Solution, Task, find_world

FEW = 2_000
SIMPLE = ("KEEP", "INDEX (filter)", "REWRITE suffix; INDEX (expression)", "INDEX (expression, group)")
QUERY = "SELECT user_id, COUNT(*) AS total FROM user_events WHERE duration_ms > 9000 GROUP BY user_id"


@pytest.fixture
def small() -> Iterator[SqlTuning]:
    env = SqlTuning.open("events", 1, FEW, query=QUERY, limits=Limits(rows=1_000))
    yield env


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Iterator[SqlTuning]:
    if request.param == "sqlite":
        yield SqlTuning.open("events", 1, FEW, query=QUERY, limits=Limits(rows=1_000))
        return
    yield _on_postgres(request.getfixturevalue("postgres_url"), _own(QUERY), FEW, limits=Limits(rows=1_000))


def _own(query: str) -> TuningTask:
    return TuningTask(id="own", description="", query=query, tables=["user_events", "users"])


def _on_postgres(url: str, task: TuningTask, rows: int, **options: Any) -> SqlTuning:
    """Make the tables of a task's schema in a database of the user's own."""
    psycopg = pytest.importorskip("psycopg")
    schema, types = find_schema(task.schema_name), {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"'}
    drawn = draw(schema, 1, rows)
    with psycopg.connect(url, autocommit=True) as connection:
        for table, columns in schema.tables().items():
            key, *others = (f"{name} {types[kind]}" for name, kind in columns.items())
            declared = ", ".join([f"{key} PRIMARY KEY", *(f"{each} NOT NULL" for each in others)])
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({declared})")
            connection.execute(f"TRUNCATE {table}")
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                for row in drawn[table]:
                    copy.write_row(row)
    return SqlTuning.of(task.model_copy(update={"database": url}), **options)


def applicable(task: TuningTask) -> Iterator[Solution]:
    """Yield the solution of each remedy that applies to a task."""
    for pattern in (*REMEDIES, *SIMPLE):
        with suppress(DoesNotApply):
            yield instantiate(pattern, task)


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
        with small._database.copy(small.limits) as copy:
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
        env = SqlTuning.open("events", 1, FEW, query=QUERY, limits=Limits(characters=10_000))
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
            SqlTuning.open("nonsense", 1)
        with pytest.raises(BadInput, match="at least one row"):
            SqlTuning.open("events", 1, 0)
        with pytest.raises(BadInput, match="nonsense"):
            tasks(1, 3, ["nonsense"])  # type: ignore[list-item]

    def test_no_server(self) -> None:
        pytest.importorskip("psycopg")
        with pytest.raises(StorageFailure, match="does not answer"):
            SqlTuning.of(_own(QUERY).model_copy(update={"database": "postgresql://localhost:1/none"}))

    def test_a_server_that_goes_away(self, postgres_url: str) -> None:
        psycopg = pytest.importorskip("psycopg")
        env = _on_postgres(postgres_url, _own(QUERY), 50)
        with pytest.raises(StorageFailure, match="no longer answers"), env._database.copy(env.limits) as copy:
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
        assert not [made for table in either.schema() for made in table.indexes]

    def test_the_index_is_in_the_plan(self, small: SqlTuning) -> None:
        measured = small.run(Solution(statements=["CREATE INDEX fine ON user_events (duration_ms, user_id)"]))
        assert "fine" in measured.plan_after
        assert "fine" not in measured.plan_before
        assert 0 < measured.index_share < 0.5

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
        env = SqlTuning.open("events", 1, FEW, query=ordered)
        assert env.run(Solution(query=f"{QUERY} ORDER BY total DESC, user_id DESC")).correct
        assert "another order" in env.run(Solution(query=f"{QUERY} ORDER BY total")).error
        env = SqlTuning.open("events", 1, FEW, query=QUERY)
        assert env.run(Solution(query=ordered)).correct

    def test_same_seed_same_rows(self) -> None:
        schema = find_schema("web")

        def drawn(seed: int) -> dict[str, list[tuple[object, ...]]]:
            return {table: list(rows) for table, rows in draw(schema, seed, 500).items()}

        assert drawn(3) == drawn(3)
        assert drawn(3) != drawn(4)
        assert [len(rows) for rows in drawn(3).values()] == [500, schema.entities]

    def test_the_tables_are_described(self, either: SqlTuning) -> None:
        events, users = either.schema()
        assert (events.name, events.rows, users.name, users.rows) == ("user_events", FEW, "users", 500)
        assert {each.name: each.distinct for each in users.columns}["user_id"] == 500

    def test_threads_take_turns(self, small: SqlTuning) -> None:
        found = []
        index = Solution(statements=["CREATE INDEX i ON user_events (duration_ms)"])
        threads = [threading.Thread(target=lambda: found.append(small.run(index).correct)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4

    def test_a_share_of_rows_is_counted(self, small: SqlTuning) -> None:
        assert 0.1 < small.share("user_events", "duration_ms > 9000") < 0.35
        with pytest.raises(BadInput, match="cannot be counted"):
            small.share("user_events", "nowhere = 1")

    @pytest.mark.parametrize(
        ("filtered", "most"),
        [
            ("duration_ms > 0", True),
            ("duration_ms > 9000", False),
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
        env = SqlTuning.open("events", 1, FEW)
        with pytest.raises(BadInput, match="no query"):
            env.run(Solution())


class TestTasks:
    def test_a_seed_gives_an_order_with_every_family(self) -> None:
        drawn = tasks(5, 64)
        assert drawn == tasks(5, 64)
        assert [t.family for t in drawn] != [t.family for t in tasks(6, 64)]
        assert {t.family for t in drawn} == set(FAMILIES)
        assert len({t.schema_name for t in drawn[:8]}) == 8
        assert len({t.id for t in drawn}) == 64

    @pytest.mark.long
    def test_queries_find_rows_on_both_databases(self, postgres_url: str) -> None:
        for task in tasks(7, 48):
            env = SqlTuning.of(task, rows=20_000, limits=Limits(runs=1))
            here = env.run(Solution())
            assert here.correct, (task.query, here)
        for task in tasks(7, 16):
            env = _on_postgres(postgres_url, task, 20_000, limits=Limits(runs=1))
            there = env.run(Solution())
            assert there.correct, (task.query, there)

    @pytest.mark.parametrize(
        "family", [*FAMILIES[:2], *(pytest.param(each, marks=pytest.mark.long) for each in FAMILIES[2:])]
    )
    def test_a_textbook_remedy_solves_each_and_leaving_it_does_not(self, family: Family) -> None:
        task = tasks(11, 1, [family])[0]
        env = SqlTuning.of(task)
        assert not judge(task, env.run(Solution())).solved
        env.limits = Limits(enough=0.05)  # what solves it is faster by far: few runs show that
        measured = [env.run(solution) for solution in applicable(task)]
        assert not [m.refused for m in measured if m.refused]
        assert not [m.error for m in measured if m.error]
        assert max(m.rows for m in measured) > 0
        assert any(judge(task, m).solved for m in measured)

    @pytest.mark.long
    def test_the_papers_story(self) -> None:
        """§7: (time, group) is found and reused, then hurts where there is a further filter."""
        first, second, third = story()
        learnt = [self._measured(task, "INDEX (time, group)") for task in (first, second, third)]
        assert [judge(t, m).solved for t, m in zip((first, second, third), learnt, strict=True)] == [
            True,
            True,
            False,
        ]
        assert learnt[2].speed_up < 1
        refined = self._measured(third, "INDEX (filter1, filter2, ..., group_column)")
        assert judge(third, refined).solved

    def test_room_for_indexes_counts(self) -> None:
        task = tasks(3, 1, ["high_cardinality"])[0]
        bloated, partial = (
            self._measured(task, pattern)
            for pattern in ("COVERING INDEX (filters, group)", "INDEX (range, group) WHERE equality")
        )
        assert "indexes take" in judge(task, bloated).summary
        assert judge(task, partial).solved

    def _measured(self, task: TuningTask, pattern: str):  # type: ignore[no-untyped-def]
        env = SqlTuning.of(task)
        return env.run(instantiate(pattern, task))


class TestAnalysis:
    def test_structure(self) -> None:
        structure = analyse(
            "SELECT u.cohort, COUNT(*) FROM user_events e JOIN users u ON u.user_id = e.user_id "
            "WHERE e.outcome IN ('ok', 'slow') AND 100 < e.duration_ms AND LOWER(e.device) = 'car' "
            "AND e.build LIKE '%7' AND e.country <> 'R01' AND (e.build = '1' OR e.user_id = 2) "
            "AND EXISTS (SELECT 1 FROM user_events x WHERE x.user_id = u.user_id) GROUP BY u.cohort LIMIT 5",
            find_schema("events").tables(),
        )
        assert [(f.column.column, f.kind) for f in structure.filters] == [
            ("outcome", "equality"),
            ("duration_ms", "range"),
            ("country", "inequality"),
        ]
        assert [(h.column.column, h.by) for h in structure.hidden] == [
            ("device", "function"),
            ("build", "leading wildcard"),
        ]
        assert [c.column for c in structure.alternatives] == ["build", "user_id"]
        assert [c.column for c in structure.group] == ["cohort"]
        assert [join.correlated for join in structure.joins] == [False, True]
        assert len(structure.correlated) == 1
        assert structure.limit == 5

    def test_a_group_may_be_named_as_a_column_of_the_answer(self) -> None:
        query = "SELECT LOWER(device) AS kind, COUNT(*) FROM user_events GROUP BY {} ORDER BY kind"
        tables = find_schema("events").tables()
        assert analyse(query.format("kind"), tables) == analyse(query.format("LOWER(device)"), tables)

    def test_what_cannot_be_analysed(self) -> None:
        for query in ("SELEC 1", "DELETE FROM users", "SELECT nowhere FROM users"):
            with pytest.raises(BadInput):
                analyse(query, find_schema("events").tables())

    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("index (time_column, group_column)", "INDEX (time, group)"),
            ("INDEX (filter1, filter2, ..., group_column)", "INDEX (filters, group)"),
            ("rewrite SARGABLE then covering index (filters)", "REWRITE sargable; COVERING INDEX (filters)"),
            ("PARTIAL INDEX (range, group) WHERE equality;", "INDEX (range, group) WHERE equality"),
            ("keep", "KEEP"),
        ],
    )
    def test_patterns_are_read_in_several_spellings(self, text: str, read: str) -> None:
        assert canonical(text) == read
        assert canonical(read) == read

    @pytest.mark.parametrize(
        "text", ["", "Consider query refactoring", "INDEX (moon)", "REWRITE everything", "DROP TABLE users"]
    )
    def test_what_is_no_pattern(self, text: str) -> None:
        with pytest.raises(BadInput):
            read_pattern(text)

    def test_a_pattern_that_does_not_apply(self) -> None:
        first = story()[0]
        for pattern in ("INDEX (join)", "REWRITE correlated", "INDEX (time) WHERE equality"):
            with pytest.raises(DoesNotApply):
                instantiate(pattern, first)

    def test_one_pattern_on_any_schema(self) -> None:
        first, second, third = (instantiate("INDEX (time, group)", task).statements for task in story())
        assert first == ["CREATE INDEX idx_user_events_1 ON user_events (event_time, user_id)"]
        assert second == ["CREATE INDEX idx_sales_1 ON sales (sale_date, product_id)"]
        assert third == ["CREATE INDEX idx_transactions_1 ON transactions (transaction_date, account_id)"]

    @pytest.mark.long
    def test_a_solution_is_said_as_a_pattern_that_makes_it_again(self) -> None:
        for task in tasks(2, 48):
            for solution in applicable(task):
                said = describe(solution, task)
                assert canonical(said) == said
        first, _, third = story()
        made = Solution(
            statements=["CREATE INDEX x ON transactions(transaction_date, amount_cents, account_id)"]
        )
        assert describe(made, third) == "INDEX (time, others, group)"
        assert describe(
            Solution(statements=["CREATE INDEX x ON user_events (event_time, user_id)"]), first
        ) == ("INDEX (time, group)")

    def test_a_rewriting_without_a_name(self) -> None:
        first = story()[0]
        other = "WITH r AS (SELECT * FROM user_events) SELECT user_id, COUNT(*) FROM r GROUP BY user_id"
        with pytest.raises(DoesNotApply, match="no name"):
            describe(Solution(query=other), first)
        with pytest.raises(BadInput):
            describe(Solution(query="SELEC 1"), first)

    def test_a_named_part_of_a_query_is_no_table(self) -> None:
        query = (
            "WITH r AS (SELECT * FROM user_events WHERE duration_ms > 5) SELECT * FROM r WHERE user_id = 1"
        )
        structure = analyse(query, find_schema("events").tables())
        assert structure.tables == ["user_events"]
        assert [each.predicate for each in structure.filters] == ["duration_ms > 5"]

    def test_queries_of_one_shape_have_one_condition(self) -> None:
        first, second, third = (task.features for task in story())
        assert first == second == ["one range filter", "grouping"]
        assert third == ["range filters", "grouping"]

    def test_rewritings_keep_the_result(self) -> None:
        """Each is measured on real rows at and beside its bounds."""
        predicates = [
            "duration_ms * 3 > 12000",
            "duration_ms * 3 >= 12001",
            "duration_ms * 7 < 28001",
            "duration_ms * 7 <= 28001",
            "duration_ms / 100 = 40",
            "duration_ms / 100 > 40",
            "duration_ms / 100 <= 40",
            "duration_ms / 100 >= 40",
            "duration_ms / 100 < 40",
            "duration_ms + 5 > 4000",
            "duration_ms - 5 <= 4000",
            "SUBSTR(event_time, 1, 7) = '2024-05'",
            "SUBSTR(event_time, 1, 7) >= '2024-05'",
            "SUBSTR(event_time, 1, 7) < '2024-05'",
        ]
        task = story()[0]
        for predicate in predicates:
            query = f"SELECT event_id, duration_ms FROM user_events WHERE {predicate}"
            changed = task.model_copy(update={"query": query})
            env = SqlTuning.of(changed, rows=20_000, limits=Limits(runs=1))
            measured = env.run(instantiate("REWRITE sargable", changed))
            assert measured.correct, (predicate, measured)
            assert measured.rows > 0, predicate

    @pytest.mark.parametrize("predicate", ["CAST(build AS INTEGER) = 77", "LOWER(request_token) >= 'm'"])
    def test_a_rewriting_that_only_fits_these_data_falls(self, predicate: str) -> None:
        query = f"SELECT event_id, duration_ms FROM user_events WHERE {predicate}"
        changed = story()[0].model_copy(update={"query": query})
        env = SqlTuning.of(changed, rows=FEW)
        measured = env.run(instantiate("REWRITE sargable", changed))
        assert "made to tell them apart" in measured.error
        assert env.run(instantiate("INDEX (expression)", changed)).correct

    def test_what_like_means_is_kept_by_an_index_without_case(self) -> None:
        query = "SELECT event_id FROM user_events WHERE request_token LIKE 'peb-00%'"
        changed = story()[0].model_copy(update={"query": query})
        with pytest.raises(DoesNotApply):
            instantiate("REWRITE sargable", changed)
        env = SqlTuning.of(changed, rows=20_000)
        measured = env.run(instantiate("INDEX (expression)", changed))
        ranged = query.replace("LIKE 'peb-00%'", ">= 'peb-00' AND request_token < 'peb-01'")
        unsound = env.run(Solution(query=ranged))
        assert measured.correct and measured.speed_up > 3 and "SEARCH" in measured.plan_after
        assert not unsound.correct and "made to tell them apart" in unsound.error

    def test_an_empty_result_proves_nothing(self) -> None:
        query = "SELECT event_id FROM user_events WHERE duration_ms < 5 AND duration_ms > 7"
        env = SqlTuning.of(story()[0].model_copy(update={"query": query}), rows=FEW)
        measured = env.run(Solution(statements=["CREATE INDEX i ON user_events (duration_ms)"]))
        assert not measured.correct and "proves nothing" in measured.error

    def test_a_query_is_as_fast_as_itself(self) -> None:
        env = SqlTuning.of(story()[0], rows=20_000)
        assert env.run(Solution()).speed_up == pytest.approx(1, rel=0.25)

    def test_a_processor_that_changes_its_pace_changes_no_speed_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every so often all takes three times as long, for some queries on end."""
        asked, ask = 0, SqliteCopy.ask

        def paced(copy: SqliteCopy, sql: str, seconds: float | None = None) -> Any:
            nonlocal asked
            asked += 1
            pace = 3 if asked // 9 % 2 else 1
            took = pace * (0.01 if "INDEX" in "".join(copy.indexes("user_events")) else 0.03)
            return ask(copy, sql, seconds)[0], took

        monkeypatch.setattr(SqliteCopy, "ask", paced)
        env = SqlTuning.of(story()[0], rows=FEW)
        index = Solution(statements=["CREATE INDEX i ON user_events (request_token)"])
        assert [round(env.run(index).speed_up, 2) for _ in range(5)] == [3.0] * 5

    def test_a_slow_original_is_stopped_once_and_can_be_solved(self) -> None:
        query = (
            "SELECT COUNT(*) AS n FROM user_events a WHERE EXISTS "
            "(SELECT 1 FROM user_events b WHERE b.request_token = a.request_token "
            "AND b.event_id > a.event_id)"
        )
        limits = Limits(baseline_seconds=0.3, runs=1)
        env = SqlTuning.of(story()[0].model_copy(update={"query": query}), rows=6_000, limits=limits)
        index = Solution(statements=["CREATE INDEX i ON user_events (request_token, event_id)"])
        before = time.thread_time()
        measured = env.run(index)
        again = env.run(index)
        spent = time.thread_time() - before
        assert measured.stopped and measured.baseline_seconds == 0.3
        assert measured.correct and measured.speed_up > 2, measured
        assert again.stopped and spent < 6

    def test_a_query_without_a_table(self) -> None:
        task = story()[0].model_copy(update={"query": "select 1", "tables": []})
        with pytest.raises(DoesNotApply):
            instantiate("INDEX (filter)", task)
        env = SqlTuning.of(task, rows=FEW)
        assert env.run(instantiate("KEEP", task)).correct

    def test_what_cannot_be_rewritten_stays(self) -> None:
        task = story()[0]
        for predicate in ("duration_ms * 3 = 10", "duration_ms * -3 > 10", "CAST(build AS INTEGER) > 5"):
            query = f"SELECT event_id FROM user_events WHERE {predicate}"
            with pytest.raises(DoesNotApply):
                instantiate("REWRITE sargable", task.model_copy(update={"query": query}))
