"""Memories that the memory agent makes of LoCoMo's conversations, and the turns that each came from.

Each speaker is a user of their own, whose turns are remembered one after another by the graph `remember`,
like the messages of a chat; the other's turns are the context. A question searches the memories of the
speakers that it names, or those of both.
"""

from collections.abc import Iterator
from time import perf_counter

from mneme.core.errors import ModelUnavailable
from mneme.evals.chat.locomo_data import Conversation, Question
from mneme.evals.options import Identity
from mneme.evals.report import Journal, Progress
from mneme.graphs.remember import builder
from mneme.nodes.chat.context import MemoryContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Namespace, Version, user_namespace
from mneme.stores.ledger.words import words_in
from mneme.stores.users.inbox import PRECEDING, Inbox, Message


async def keep(
    conversation: Conversation, ledger: Ledger, agent: Identity, journal: Journal, progress: Progress
) -> None:
    """Remember every turn that the journal lacks, and note the number of memories.

    A turn that the model could not process is noted with the reason, and not tried again. Raises
    ModelUnavailable if the model does not answer at all.
    """
    graph, done, whole = builder.compile(store=LedgerStore(ledger)), 0, conversation.sample_id
    for speaker in _speakers(conversation):
        user = _user(conversation, speaker)
        context = MemoryContext(user=user, memory_agent=agent.responder)
        for message in _messages(conversation, speaker):
            done += 1
            name = f"{whole}/{message['message_id']}/remembered"
            if name in journal:  # done before the run was interrupted
                continue
            started = perf_counter()
            report = await graph.ainvoke({"messages": [message]}, context=context)
            failed = [each["error"] for each in report["failed"]]
            # Without a refused answer the model was not reached: an outage is no loss of memory.
            if failed and not report["asked"]["refused"]:
                raise ModelUnavailable(failed[0], "The same command goes on with the turns that are left.")
            if failed:
                # Else the next turn's run would try it again.
                await Inbox(ledger).drop(user, message["message_id"])
            row = {"failed": failed, "asked": report["asked"], "seconds": perf_counter() - started}
            journal.add(name, row)
            progress(done, len(conversation.turns), f"{whole}: remembering")
    if f"{whole}/kept" not in journal:
        memories = [await ledger.count(namespace) for namespace in _namespaces(conversation)]
        behind = await _turns_behind(conversation, ledger)
        journal.add(f"{whole}/kept", {"memories": sum(memories), "turns": behind})


def asked_of(conversation: Conversation, question: Question) -> list[Namespace]:
    """Return the namespaces of the memories that a question searches."""
    words = words_in(question.question)
    named = [speaker for speaker in _speakers(conversation) if words_in(speaker) <= words]
    return _namespaces(conversation, *named)


def _namespaces(conversation: Conversation, *speakers: str) -> list[Namespace]:
    """Return the namespaces of these speakers' memories; of all speakers where none is given."""
    wanted = speakers or _speakers(conversation)
    return [user_namespace(_user(conversation, each), "memories") for each in wanted]


async def turns_of(memory: Version, ledger: Ledger) -> list[str]:
    """Return the turns that a memory came from, in any of its versions."""
    history = await ledger.history(memory.namespace, memory.key)
    return sorted({message for version in history for message in version.change.source.messages})


async def _turns_behind(conversation: Conversation, ledger: Ledger) -> list[str]:
    """Return the turns that any memory came from: no search finds another."""
    turns: set[str] = set()
    for namespace in _namespaces(conversation):
        for memory in await ledger.records(namespace, limit=await ledger.count(namespace)):
            turns.update(await turns_of(memory, ledger))
    return sorted(turns)


def _speakers(conversation: Conversation) -> list[str]:
    return sorted({turn.speaker for turn in conversation.turns})


def _user(conversation: Conversation, speaker: str) -> str:
    return f"{conversation.sample_id} {speaker}"


def _messages(conversation: Conversation, speaker: str) -> Iterator[Message]:
    for number, turn in enumerate(conversation.turns):
        if turn.speaker == speaker:
            before = conversation.turns[max(0, number - PRECEDING) : number]
            yield Message(
                message=turn.said,
                message_id=turn.dia_id,
                preceding=[
                    f"{'user' if each.speaker == speaker else each.speaker}: {each.said}"
                    for each in before
                    # A new session begins without the last one's turns, as a chat does.
                    if each.session == turn.session
                ],
                time=f"{turn.day}T00:00:00+00:00" if turn.day else "",
                thread=turn.session,
            )
