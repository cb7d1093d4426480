"""Fixtures that several tests share."""

import gc
import os

# Read when numpy and PyTorch are loaded. There is a test process on each core: threads beside it would only
# spin until they get one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import AsyncIterator, Iterator
from functools import cache
from multiprocessing import util
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from mneme.core.settings import settings
from mneme.integrations import shared
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger
from tests.doubles.command_line import Run, run_mneme
from tests.doubles.embedding import WordEmbedder
from tests.doubles.langgraph_server import Guarded, Server, serving
from tests.doubles.quiet import NOWHERE, quiet

pytest_plugins = [
    "tests.doubles.greetings",
    "tests.doubles.postgres",
    "tests.doubles.qdrant_server",
    "tests.doubles.tiny_encoder",
    "tests.doubles.tiny_llama",
]


SERVER = 'xdist_group("server")'
BEFORE_OTHERS = (
    "tests/discussion/test_discussions.py",
    "tests/environments/test_sql_tuning.py",
    "tests/environments/test_tuning_tasks.py",
    "tests/evals/test_compare.py",
    "tests/household/test_household_cli.py",
    "tests/household/test_mita.py",
    "tests/learning/test_compound_learning.py",
    "tests/learning/test_learn_cli.py",
    "tests/mneme/test_cli.py",
    "tests/mneme/test_editors.py",
    "tests/sharing/test_share_cli.py",
    "tests/stores/test_damage.py",
    "tests/stores/test_knowledge_cards.py",
    "tests/stores/test_ledger_disks.py",
    "tests/stores/test_upgrading.py",
    "tests/test_docs_run.py",
    "tests/test_house.py",
    "tests/test_installed.py",
)
"""Long files: where one began near the end, its process would run the last of it alone."""
TRAINED = ("BertScore", "tiny_encoder", "tiny_llama")


def pytest_configure() -> None:
    """Make the folder with the socket of what forks commands: made in a test, it would end with it."""
    util.get_temp_dir()
    os.environ["MNEME_SETTINGS"] = os.devnull  # not those of whoever runs the tests
    gc.disable()  # until all is collected: nearly all that is loaded and made until then stays


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """One process runs all tests of a file: what they prepare and load is there once.

    Files with tests that share a server go to one process, too, and so do those that train: to load what
    trains takes seconds.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return shared_by(self.config.rootpath / file) or file


def has_postgres() -> bool:
    from tests.doubles.postgres import BINARIES  # noqa: PLC0415  (a plugin: pytest loads it after this file)

    return "MNEME_TEST_POSTGRES" in os.environ or any(BINARIES.glob("*/bin/initdb"))


@cache
def shared_by(file: Path) -> str:
    """Return what a file's tests share with those of other files, if anything."""
    text = file.read_text(encoding="utf-8")
    if SERVER in text:
        return "server"
    return "training" if any(each in text for each in TRAINED) else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest: the tests that share a server, those that train, and long files."""
    first = {config.rootpath / name for name in BEFORE_OTHERS}
    shared = {"server": 0, "training": 1, "": 2}
    items.sort(key=lambda item: (shared[shared_by(item.path)], item.path not in first))
    for item in items:
        if item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep every test out of the home of whoever runs it, and from waiting for its disk.

    What is synced matters where the power fails; a test of that puts its own `fsync` here.
    """
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "mneme_home"))
    monkeypatch.setattr(os, "fsync", lambda file: None)
    settings.cache_clear()
    yield tmp_path / "mneme_home"
    shared.close()  # what the test's agents have open goes with its folder
    settings.cache_clear()


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model be found."""
    monkeypatch.setenv("MNEME_OLLAMA_URL", NOWHERE)
    settings.cache_clear()


@pytest.fixture
def mneme(tmp_path: Path) -> Run:
    """Run `mneme` in a home of its own, with no model anywhere."""
    return lambda *words, stdin="", **more: run_mneme(words, quiet(tmp_path / "home", **more), stdin)


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a file of users' keys, which are asked for from now on."""
    monkeypatch.setenv("MNEME_AUTH", str(tmp_path / "users.json"))
    settings.cache_clear()
    return tmp_path / "users.json"


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def edge_location(tmp_path: Path) -> str:
    """Name a new folder for an embedded ledger."""
    return str(tmp_path / "ledger")


@pytest.fixture(params=["edge", "team"])
def location(request: pytest.FixtureRequest) -> str:
    """Name a place on each log and each index where a ledger can be opened again.

    A log in a folder with an index on a server stands for both where there is no Postgres, and has the whole
    contract in stores/ledger.
    """
    engine = "double" if request.param == "team" and not has_postgres() else request.param
    return str(request.getfixturevalue(f"{engine}_location"))


@pytest.fixture
async def ledger(location: str, embedder: WordEmbedder) -> AsyncIterator[Ledger]:
    """Give an empty ledger: in a folder, and in Postgres with its index on a server."""
    opened = await open_ledger(location, embedder)
    yield opened
    await opened.close()


@pytest.fixture
async def edge_ledger(edge_location: str, embedder: WordEmbedder) -> AsyncIterator[Ledger]:
    """Give an empty embedded ledger, for what concerns only files and processes."""
    opened = await open_ledger(edge_location, embedder)
    yield opened
    await opened.close()


@pytest.fixture
async def bundled(edge_location: str) -> AsyncIterator[Ledger]:
    """Give an empty embedded ledger with the bundled embedder."""
    opened = await open_ledger(edge_location, await open_embedder("bundled"))
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give one server to all tests of the group `server`, each with users and teams of its own."""
    with serving(tmp_path_factory.mktemp("served") / "home") as running:
        yield running
        running.kill()  # others may be done by now: how one ends is seen in test_erasing.py
    assert "BlockingError" not in running.log.read_text()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Give one server that asks for keys, and lets little wait, to the group `server`."""
    folder = tmp_path_factory.mktemp("guarded")
    users = folder / "users.json"
    with serving(folder / "home", MNEME_AUTH=str(users), MNEME_WAITING_BYTES="2000") as running:
        yield Guarded(running, users)
        running.kill()
    assert "BlockingError" not in running.log.read_text()


def pytest_collection_finish() -> None:
    """Let garbage collection pass over what is loaded: it would look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
