"""Which run an outcome names, and where LangSmith shows it, with a stand-in for LangSmith."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client

from mneme.graphs.memory_agent import builder as memory_agent
from mneme.graphs.remember import builder as remember
from mneme.nodes.chat.context import MemoryContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox
from tests.doubles.command_line import run_mneme
from tests.doubles.quiet import quiet

RULES = MemoryContext(memory_agent="rules")
PROJECT, TENANT = str(uuid4()), str(uuid4())
KNOWN = {
    "id": PROJECT,
    "tenant_id": TENANT,
    "name": "known",
    "start_time": "2026-01-01T00:00:00",
    "reference_dataset_id": None,
}
MESSAGE = {"message": "I live in Austin.", "message_id": "m1"}


class Smithy(BaseHTTPRequestHandler):
    """What LangSmith's client takes for its server: it knows one project, `known`, and counts who asks."""

    asked = 0

    def do_GET(self) -> None:
        found: list[dict[str, Any]] = []
        if self.path.startswith("/sessions"):
            type(self).asked += 1
            if "name=known" in self.path:
                found = [KNOWN]
        self._answer(200, found if self.path.startswith("/sessions") else {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(202, {})

    do_PATCH = do_POST  # noqa: N815  (the names that http.server looks for)

    def _answer(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent."""


@pytest.fixture
def smithy() -> Iterator[str]:
    Smithy.asked = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Smithy) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def to(url: str, project: str) -> RunnableConfig:
    """Return the config of a run that is traced to a server."""
    client = Client(url, api_key="x", auto_batch_tracing=False)
    return {"callbacks": [LangChainTracer(client=client, project_name=project)], "run_id": uuid4()}


async def told(ledger: Ledger, message: Any, config: RunnableConfig) -> dict[str, Any]:
    graph: Any = memory_agent.compile(store=LedgerStore(ledger))
    result: dict[str, Any] = await graph.ainvoke(message, config, context=RULES)
    return result


async def test_an_outcome_names_its_run_and_the_trace(bundled: Ledger, smithy: str) -> None:
    config = to(smithy, "known")
    result = await told(bundled, MESSAGE, config)

    run = str(config["run_id"])
    assert result["run_id"] == run
    assert result["trace"] == f"http://localhost/o/{TENANT}/projects/p/{PROJECT}/r/{run}"
    kept = await Inbox(bundled).outcome("local", "m1")
    assert kept and (kept["run_id"], kept["trace"]) == (run, result["trace"])
    again = await told(bundled, MESSAGE, to(smithy, "known"))
    assert again["run_id"] == run, "the message was decided on in the first run"


async def test_a_batch_is_one_run_and_langsmith_is_asked_once(bundled: Ledger, smithy: str) -> None:
    graph: Any = remember.compile(store=LedgerStore(bundled))
    config = to(smithy, "known")
    batch = {"messages": [MESSAGE, {"message": "I have a cat.", "message_id": "m2"}]}
    await graph.ainvoke(batch, config | {"recursion_limit": 100}, context=RULES)

    outcomes = [await Inbox(bundled).outcome("local", each) for each in ("m1", "m2")]
    assert [each and each["run_id"] for each in outcomes] == [str(config["run_id"])] * 2
    assert all(each and each["trace"].endswith(str(config["run_id"])) for each in outcomes)
    assert Smithy.asked == 1


async def test_a_project_that_langsmith_does_not_know_has_no_link(bundled: Ledger, smithy: str) -> None:
    assert (await told(bundled, MESSAGE, to(smithy, "new")))["trace"] == ""


async def test_without_tracing_there_is_a_run_and_no_link(bundled: Ledger) -> None:
    given = uuid4()
    first = await told(bundled, MESSAGE, {"run_id": given})
    second = await told(bundled, {"message": "I have a cat."}, {})

    assert (first["run_id"], first["trace"]) == (str(given), "")
    assert second["run_id"] and second["trace"] == ""


def test_the_command_shows_the_run_and_the_trace(smithy: str, tmp_path: Path) -> None:
    file = tmp_path / "talk.txt"
    file.write_text("user: I live in Austin.\n")
    on = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "x", "LANGSMITH_PROJECT": "known"}
    environment = quiet(tmp_path / "home", **on, LANGSMITH_ENDPOINT=smithy)
    first, again = (run_mneme(["remember", str(file), *more], environment) for more in (["--json"], []))
    (outcome,) = json.loads(first.stdout)["outcomes"]
    assert outcome["trace"].endswith(f"/projects/p/{PROJECT}/r/{outcome['run_id']}")
    assert f"Traces: {outcome['trace']}" in again.stderr
