"""LoCoMo: how much of the evidence for a question the ledger's search finds among raw turns.

Each turn is a record in the real ledger, with its speaker and its session's date in the text, in one
namespace a conversation. Recall at k is the benchmark's: the share of a question's evidence turns
among the first k found, averaged over questions. Questions whose evidence is not in the conversation
are left out (the benchmark counts them as 1).

With `--search-in memories` the turns go through the memory agent first, and what it kept is searched instead
(see `locomo_kept`). Then a memory counts as the turns that it came from. A conversation takes hundreds of
calls, so what was kept lies beside the journal: the same command goes on after a kill.

Where a language model answers, the chatbot's own question `reply` is put to it with the turns found
and the benchmark's request for a short phrase. Adversarial questions are a choice of two, as in the
benchmark: `Not mentioned in the conversation` or the trap (`adversarial_answer`), in an order drawn
per question; right is an answer that chooses the first or says that it is not mentioned.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

from pydantic import Field

from mneme.core.errors import BadAnswer
from mneme.evals.chat.locomo_data import (
    Conversation,
    Question,
    answer_score,
    chosen,
    find,
    first_turns,
    load,
    picked,
    put,
)
from mneme.evals.chat.locomo_kept import asked_of, keep, turns_of
from mneme.evals.chat.locomo_tables import DEPTHS, SEARCH_MODES, report, tokens
from mneme.evals.measuring import ledger_at, temporary_ledger
from mneme.evals.options import Agents, Identity, Role, RunOptions, identify
from mneme.evals.report import Journal, Progress, Report, Row, file_digest
from mneme.models.asking.asking import SEED, ask
from mneme.prompts.chat.chatbot import Turn as Given
from mneme.prompts.chat.chatbot import reply
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import Mode
from mneme.stores.ledger.records import Change, Hit, Namespace, Write

SearchedIn = Literal["turns", "memories"]
CONTEXT_TURNS = 10
"""Turns that the chatbot is shown, as the paper's baselines show."""


class Options(RunOptions):
    """The benchmark's file, the responder, its sources, and the folder of the results."""

    data: Path | None = Field(None, description="LoCoMo's file or its folder; default: MNEME_DATA's.")
    agents: Agents = "auto"
    chatbot: Role = ""
    conversations: list[str] = Field(
        [], description="A conversation to use, by its name (conv-26); default: all of them."
    )
    search_in: SearchedIn = Field("turns", description="Search raw turns, or what was kept of them.")
    memory_agent: Role = ""
    turns: int = Field(
        0, ge=0, description="Use the first turns of each conversation, and the questions on them; 0: all."
    )
    search: Mode = Field("blend", description="The search whose first ten turns are shown.")


@dataclass
class Setup:
    """Shared resources of all questions."""

    ledger: Ledger
    journal: Journal
    who: Identity
    agent: Identity
    options: Options


class Case(NamedTuple):
    """A question, with the turns that answer it and the namespaces to search."""

    name: str
    question: Question
    evidence: list[str]
    namespaces: list[Namespace]


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Search for every question in every mode, answer where a language model can, and report."""
    path = find(options.data)
    conversations = first_turns(picked(load(path), options.conversations), options.turns)
    who = await identify(options.chatbot or options.agents)
    agent = await identify(options.memory_agent or options.agents)
    embedder = await options.opened_embedder()
    configuration = {
        "data": file_digest(path),
        "conversations": [each.sample_id for each in conversations],
        "chatbot": who.model_dump(),
        "limit": options.turns,
        "search_in": options.search_in,
        "memory_agent": agent.model_dump() if options.search_in == "memories" else None,
        "answer_from": options.search,
        "embedder": embedder.name,
        "seed": SEED,
    }
    journal = options.journal("locomo", configuration)
    is_kept, folder = options.search_in == "memories", journal.path.with_suffix(".memories")
    if is_kept and options.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    # a ledger that a memory agent fills stays beside the journal
    async with ledger_at(folder, embedder) if is_kept else temporary_ledger(embedder) as ledger:
        await _run(conversations, Setup(ledger, journal, who, agent, options), progress)
    made = report(conversations, journal, who, embedder.name, str(agent) if is_kept else "")
    if options.turns:
        made.notes.insert(0, f"Of each conversation its first {options.turns} turns alone were used.")
    return made


async def _run(conversations: Sequence[Conversation], setup: Setup, progress: Progress) -> None:
    cases, of_memories = list[Case](), setup.options.search_in == "memories"
    for conversation in conversations:
        for number, question in enumerate(conversation.questions):
            below = asked_of(conversation, question) if of_memories else [_namespace(conversation)]
            name, evidence = f"{conversation.sample_id}/{number}", conversation.evidence_of(question)
            cases.append(Case(name, question, evidence, below))
        if of_memories:
            await keep(conversation, setup.ledger, setup.agent, setup.journal, progress)
        else:
            await _store(conversation, setup.ledger)
    searches = {f"{case.name}/{mode}": (case, mode) for case in cases for mode in SEARCH_MODES}
    await setup.journal.play(searches, lambda each: _look_up(*each, setup), progress)
    if setup.who.is_model:
        answers = {f"{case.name}/answer": case for case in cases}
        await setup.journal.play(answers, lambda case: _answer(case, setup), progress)


def _namespace(conversation: Conversation) -> Namespace:
    return "locomo", conversation.sample_id


async def _store(conversation: Conversation, ledger: Ledger) -> None:
    """Put every turn into the ledger and search once, so that the first question has no start-up cost."""
    change = Change(reason="an utterance of the benchmark", actor="locomo")
    namespace = _namespace(conversation)
    writes = [
        Write(
            event="insert",
            namespace=namespace,
            key=turn.dia_id,
            value={"entities": [turn.speaker], "time": turn.day, "thread": turn.session},
            text=turn.wording,
            change=change,
        )
        for turn in conversation.turns
    ]
    await ledger.write(writes)
    for mode in SEARCH_MODES:
        await ledger.search(namespace, "warm up", mode=mode)


async def _look_up(case: Case, mode: Mode, setup: Setup) -> Row:
    asked, hits, started = case.question.question, list[Hit](), perf_counter()
    for namespace in case.namespaces:
        hits += await setup.ledger.search(namespace, asked, limit=DEPTHS[-1], mode=mode)
    # Each speaker's memories were searched by themselves.
    seconds, hits = perf_counter() - started, sorted(hits, key=lambda hit: -hit.score)[: DEPTHS[-1]]
    texts, of_memories = [hit.version.text for hit in hits], setup.options.search_in == "memories"
    return {
        "category": case.question.category,
        "evidence": case.evidence,
        "found": [
            await turns_of(hit.version, setup.ledger) if of_memories else [hit.version.key] for hit in hits
        ],
        "records": [[*hit.version.namespace, hit.version.key] for hit in hits],
        "tokens": [tokens(texts[:depth]) for depth in DEPTHS],
        "seconds": seconds,
    }


async def _answer(case: Case, setup: Setup) -> Row:
    """Answer the question from the first turns found, and score the answer; no answer scores 0."""
    found = setup.journal[f"{case.name}/{setup.options.search}"]["records"][:CONTEXT_TURNS]
    versions = [await setup.ledger.get(tuple(namespace), key) for *namespace, key in found]
    given = Given(message=put(case.name, case.question), memories=[v.text for v in versions if v])
    started, row = perf_counter(), {"category": case.question.category}
    try:
        answered = await ask(reply, given, setup.who.responder)
    except BadAnswer as bad:  # counts as 0, as the benchmark counts an empty answer
        return row | {"answer": "", "score": 0.0, "refused": str(bad)}
    return row | {
        "answer": answered.value,
        "score": answer_score(case.question, chosen(case.name, case.question, answered.value)),
        "responder": answered.responder,
        "prompt_tokens": answered.prompt_tokens,
        "seconds": perf_counter() - started,
    }
