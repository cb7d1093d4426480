"""LoCoMo: how much of the evidence for a question the ledger's search finds among raw turns.

Each turn is a record in the real ledger, with its speaker and its session's date in the text, in one
namespace a conversation. Recall at k is the benchmark's: the share of a question's evidence turns
among the first k found, averaged over questions. Questions whose evidence is not in the conversation
are left out (the benchmark counts them as 1).

Where a language model answers, the chatbot's own question `reply` is put to it with the turns found
and the benchmark's request for a short phrase. Adversarial questions are a choice of two, as in the
benchmark: `Not mentioned in the conversation` or the trap (`adversarial_answer`), in an order drawn
per question; right is an answer that chooses the first or says that it is not mentioned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from pydantic import BaseModel, Field

from evals.answering import Identity, identify
from evals.locomo_data import Conversation, Question, answer_score, chosen, find, load, put
from evals.locomo_tables import DEPTHS, MODES, Mode, report, tokens
from evals.report import Journal, Progress, Report, file_digest, open_journal
from mneme.settings import settings
from models.asking import SEED, ask
from models.embedders import Embedder, open_embedder
from prompts.chatbot import Turn as Given
from prompts.chatbot import reply
from stores.ledger import Ledger, open_ledger
from stores.records import Change, Hit, Write

SHOWN = 10
"""Turns that the chatbot is shown, as the paper's baselines show."""


class Options(BaseModel):
    """What to run: the benchmark's file, who answers from what, and where results go."""

    data: Path | None = Field(None, description="LoCoMo's file or the folder that holds it.")
    out: Path = Field(Path("runs"), description="Folder of raw results and plots.")
    chatbot: str = Field("auto", description="Who answers the questions.")
    answer_from: Mode = Field("hybrid", description="The search whose first ten turns are shown to it.")
    embedder: str = Field("", description="Embedder of turns and questions; default: the settings'.")
    fresh: bool = Field(False, description="Start anew instead of resuming.")


class Once:
    """An embedder that keeps the last query, so that a second search shows the time without embedding."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self.embed_documents = embedder.embed_documents
        self._embedder = embedder
        self._last: tuple[str, list[float]] = ("", [])

    async def embed_query(self, text: str) -> list[float]:
        if self._last[0] != text:
            self._last = (text, await self._embedder.embed_query(text))
        return self._last[1]

    def forget(self) -> None:
        self._last = ("", [])


@dataclass
class Bench:
    """What every question is put to."""

    ledger: Ledger
    embedder: Once
    journal: Journal
    who: Identity
    answer_from: Mode


@dataclass
class Place:
    """One question, where it stands, and the turns that answer it."""

    name: str
    question: Question
    evidence: list[str]
    namespace: tuple[str, str]


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Search for every question in every mode, answer where a language model can, and report."""
    path = find(options.data)
    conversations = load(path)
    who = await identify(options.chatbot)
    embedder = Once(await open_embedder(options.embedder or settings().embedder))
    configuration = {
        "data": file_digest(path),
        "chatbot": who.model_dump(),
        "answer_from": options.answer_from,
        "embedder": embedder.name,
        "seed": SEED,
    }
    journal = open_journal(options.out, "locomo", configuration, fresh=options.fresh)
    with TemporaryDirectory(prefix="mneme-locomo-") as folder:
        ledger = await open_ledger(folder, embedder)
        try:
            await _run(conversations, Bench(ledger, embedder, journal, who, options.answer_from), progress)
        finally:
            await ledger.close()
    return report(conversations, journal, who, embedder.name)


async def _run(conversations: Sequence[Conversation], bench: Bench, progress: Progress) -> None:
    places = list(_places(conversations))
    for conversation in conversations:
        await _store(conversation, bench.ledger)
    for number, place in enumerate(places):
        for mode in MODES:
            await _look_up(place, mode, bench)
        if bench.who.is_model:
            await _answer(place, bench)
        progress(number + 1, len(places), place.name)


def _places(conversations: Sequence[Conversation]) -> Iterator[Place]:
    for conversation in conversations:
        for number, question in enumerate(conversation.questions):
            evidence = conversation.evidence_of(question)
            yield Place(f"{conversation.sample_id}/{number}", question, evidence, _namespace(conversation))


def _namespace(conversation: Conversation) -> tuple[str, str]:
    return "locomo", conversation.sample_id


async def _store(conversation: Conversation, ledger: Ledger) -> None:
    """Put every turn into the ledger and search once, so that the first question pays for nothing."""
    change = Change(reason="an utterance of the benchmark", actor="locomo")
    namespace = _namespace(conversation)
    writes = [
        Write(
            event="insert",
            namespace=namespace,
            key=turn.dia_id,
            value={"speaker": turn.speaker, "date": turn.date},
            text=turn.wording,
            change=change,
        )
        for turn in conversation.turns
    ]
    await ledger.write(writes)
    for mode in MODES:
        await ledger.search(namespace, "warm up", mode=mode)


async def _look_up(place: Place, mode: Mode, bench: Bench) -> None:
    """Search twice: with the question's embedding yet to be made, then with it known."""
    case = f"{place.name}/{mode}"
    if case in bench.journal:
        return
    bench.embedder.forget()
    hits, with_embedding = await _timed(place, mode, bench)
    _, without = await _timed(place, mode, bench)
    texts = [hit.version.text for hit in hits]
    row = {
        "category": place.question.category,
        "evidence": place.evidence,
        "found": [hit.version.key for hit in hits],
        "tokens": [tokens(texts[:depth]) for depth in DEPTHS],
        "seconds_with_embedding": with_embedding,
        "seconds_without_embedding": without,
    }
    bench.journal.add(case, row)


async def _timed(place: Place, mode: Mode, bench: Bench) -> tuple[list[Hit], float]:
    started = perf_counter()
    hits = await bench.ledger.search(place.namespace, place.question.question, limit=DEPTHS[-1], mode=mode)
    return hits, perf_counter() - started


async def _answer(place: Place, bench: Bench) -> None:
    """Have the chatbot's question answered from the first turns found, and score the answer."""
    case = f"{place.name}/answer"
    if case in bench.journal:
        return
    found = bench.journal[f"{place.name}/{bench.answer_from}"]["found"][:SHOWN]
    versions = [await bench.ledger.get(place.namespace, key) for key in found]
    given = Given(message=put(place.name, place.question), memories=[v.text for v in versions if v])
    started = perf_counter()
    answered = await ask(reply, given, bench.who.responder)
    answer = chosen(place.name, place.question, answered.value)
    row = {
        "category": place.question.category,
        "answer": answered.value,
        "score": answer_score(place.question, answer),
        "responder": answered.responder,
        "prompt_tokens": answered.prompt_tokens,
        "seconds": perf_counter() - started,
    }
    bench.journal.add(case, row)
