"""What is noted of who was shown what: not for good, and not of what is forgotten."""

import asyncio
from datetime import timedelta

import pytest

from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.stores import audit
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger

FACT = "Reporting uses PostgreSQL."


async def noted(ledger: Ledger) -> list[str]:
    """Wait until what was shown is noted; return what the ledger has of it."""
    await asyncio.sleep(2 * audit.GATHERING_SECONDS)
    return [line async for line in ledger.export(("users",)) if "readings" in line]


@pytest.mark.parametrize("everything", [False, True])
async def test_no_note_of_what_is_forgotten_while_it_waits_is_written(
    bundled: Ledger, everything: bool
) -> None:
    editor = Memories(bundled, "ann", "editor")
    known = await editor.add(FACT)
    if not everything:
        await editor.add("I like tea.")
    await editor.recall("What does reporting use?")
    await (editor.forget_everything() if everything else editor.forget(known.key))
    left = await noted(bundled)
    assert known.key not in "".join(left) and len(left) == (not everything)
    assert (await editor.readings() == []) == everything


async def test_old_notes_are_not_shown_and_go_without_a_server_too(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = Memories(bundled, "ann", "my-console")
    await editor.add(FACT)
    await editor.recall("What does reporting use?")
    assert len(await noted(bundled)) == len(await editor.readings()) == 1
    monkeypatch.setattr(audit, "READINGS_KEPT_FOR", timedelta(0))
    assert await editor.readings() == []
    monkeypatch.setattr(audit, "READINGS_DROPPED_EVERY", timedelta(0))
    await editor.recall("What does reporting use?")
    assert await noted(bundled) == []


async def test_a_person_at_the_console_is_not_noted(bundled: Ledger) -> None:
    for caller in ("user", "console", "ann, console"):
        person = Memories(bundled, "ann", caller)
        await person.add(FACT)
        await person.recall("What does reporting use?")
    assert await noted(bundled) == []


async def test_what_somebody_else_put_there_is_passed_over(bundled: Ledger) -> None:
    """LangGraph's store lets a user's programs put anything beside the memories."""
    for place in ("readings", "policies"):
        await LedgerStore(bundled).aput(("users", "ann", place), "odd", {"text": "anything"})
    editor, shared = Memories(bundled, "ann", "editor"), SharedMemory(bundled, "ann")
    assert (await editor.add(FACT)).is_new and await editor.readings() == []
    await shared.set_policy("analysts", "always", ["tea"])
    assert (await editor.add("I like tea.")).shared_with == ("analysts",)
    assert [each.team for each in await shared.policies()] == ["analysts"]
