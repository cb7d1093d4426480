"""A user's memories: typed, isolated, undoable, erasable."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from mneme.api.memories import Memories
from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.stores.ledger import reading
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import Read, versions_in
from mneme.stores.ledger.records import Change, Source, Version, unescaped, user_namespace
from mneme.stores.users.inbox import Inbox, Message
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, overlaps
from tests.doubles.inbox import STORED

SAID = Change(reason="said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))


TRICKY = [
    "a.b",
    "a%2Eb",
    "a",
    "a/b",
    "a\\b",
    "A",
    "ａ",
    "é",
    "e\u0301",
    "田中",
    "*x",
    "users",
    "a b",
    "..",
    "%25",
]


def memory(content: str, **more: Any) -> Memory:
    return Memory(content=content, quote=content, message_id="m1", thread="t1", **more)


@pytest.fixture
def alice(ledger: Ledger) -> UserMemories:
    return UserMemories(ledger, "alice")


class TestMemories:
    async def test_a_memory_comes_back_as_it_was(self, alice: UserMemories) -> None:
        whole = Memory(
            content="Max is a Labrador mix",
            kind="episodic",
            entities=["Max"],
            relations=["Max | is a | Labrador mix"],
            quote="my dog Max, a Labrador mix",
            message_id="m1",
            thread="t1",
            time="2026-01-01T00:00:00+00:00",
        )
        made = await alice.insert(whole, change=SAID)
        assert made.memory == whole
        assert await alice.get(made.key) == made
        assert await alice.all() == [made]
        with pytest.raises(NotFound):
            await alice.get("nothing")

    async def test_similar_memories_are_the_nearest_by_cosine(self, alice: UserMemories) -> None:
        for text in ("Max is a Labrador mix", "The user drinks tea", "The user drinks coffee"):
            await alice.insert(memory(text, kind="episodic" if "tea" in text else "semantic"), change=SAID)
        for mode in ("dense", "hybrid", "blend"):
            found = await alice.similar("who drinks tea?", 2, mode=mode)
            assert [each.memory.content for each in found] == [
                "The user drinks tea",
                "The user drinks coffee",
            ]
            assert found[0].similarity is not None
            assert found[0].similarity > (found[1].similarity or 0)
            near = await alice.similar(
                "who drinks tea?", 3, min_similarity=found[0].similarity - 1e-4, mode=mode
            )
            assert [each.memory.content for each in near] == ["The user drinks tea"]
        assert len(await alice.similar("who drinks?", kind="episodic")) == 1

    async def test_updates_and_retirements_keep_their_history(self, alice: UserMemories) -> None:
        made = await alice.insert(memory("Max is four"), change=SAID)
        await alice.update(made.key, memory("Max is five"), change=SAID, expected_version=1)
        with pytest.raises(Conflict):
            await alice.update(made.key, memory("Max is six"), change=SAID, expected_version=1)
        assert "Max is five" in await alice.diff(made.key, 1, 2)
        await alice.retire(made.key, change=SAID, expected_version=2)
        assert await alice.all() == []
        assert [each.live for each in await alice.all(include_retired=True)] == [False]
        assert [each.version for each in await alice.history(made.key)] == [1, 2, 3]
        assert [each.memory.content for each in await alice.as_of(made.at)] == ["Max is four"]
        assert (await alice.rollback(made.key, 1, change=SAID)).memory.content == "Max is four"

    async def test_one_memory_s_changes_are_undone_whatever_others_did(self, alice: UserMemories) -> None:
        cat = await alice.insert(Memory(content="a cat"), change=SAID)
        tom = await alice.update(cat.key, Memory(content="Tom"), change=SAID, expected_version=1)
        tea = await alice.insert(Memory(content="tea"), change=SAID)
        assert [(each.key, each.version) for each in await alice.latest_changes(2)] == [
            (tea.key, 1),
            (cat.key, 2),
        ]
        assert [each.key for each in await alice.all(limit=1, newest_first=True)] == [tea.key]
        with pytest.raises(Conflict):
            await alice.undo_one(cat.key, actor="alice", expected_version=1)
        undone = await alice.undo_one(cat.key, actor="alice", expected_version=tom.version)
        assert undone is not None and undone.memory.content == "a cat"
        gone = await alice.undo_one(cat.key, actor="alice")
        assert gone is not None and not gone.live
        assert await alice.undo_one(cat.key, actor="alice") is None
        assert (await alice.count(), await alice.count(include_retired=True)) == (1, 2)

    async def test_undo_takes_back_one_change_after_another(self, alice: UserMemories) -> None:
        tea = await alice.insert(memory("tea"), change=SAID)
        dog = await alice.insert(memory("dog"), change=SAID)
        await alice.update(tea.key, memory("green tea"), change=SAID, expected_version=1)
        await alice.retire(dog.key, change=SAID, expected_version=1)

        async def now() -> list[str]:
            return [each.memory.content for each in await alice.all()]

        seen = [await now()]
        while await alice.undo(actor="alice"):
            seen.append(await now())
        assert seen == [["green tea"], ["green tea", "dog"], ["tea", "dog"], ["tea"], []]
        assert await alice.undo(actor="alice") is None
        cat = await alice.insert(memory("cat"), change=SAID)
        assert (await alice.undo(actor="alice")) == (await alice.get(cat.key))
        assert await now() == []

    async def test_export_and_import_keep_to_the_user(self, alice: UserMemories, ledger: Ledger) -> None:
        await alice.insert(memory("tea"), change=SAID)
        lines = [line async for line in alice.export()]
        bob = UserMemories(ledger, "bob")
        report = await bob.import_(lines)
        assert [refused.line for refused in report.refused] == [1]
        assert await bob.all() == []
        assert (await alice.import_(lines)).unchanged == 1

    async def test_lines_that_hold_no_memory_are_refused_by_number(self, alice: UserMemories) -> None:
        for text in ("tea", "dog", "cat"):
            await alice.insert(memory(text), change=SAID)
        dog = (await alice.all())[1]
        await alice.update(dog.key, memory("cat and dog"), change=SAID, expected_version=1)
        lines = [json.loads(line) async for line in alice.export()]
        for line in lines:
            line["namespace"], line["key"] = alice.namespace, f"new-{line['key']}"
        lines[1]["value"] = {"nonsense": [1]}
        lines[3]["value"]["content"] = 7
        report = await alice.import_(map(json.dumps, lines))
        assert (report.imported, [refused.line for refused in report.refused]) == (1, [2, 3, 4])
        assert "content: Field required" in report.refused[0].reason
        assert "1 to 2" in report.refused[1].reason, "the other version of the same record"
        assert [each.memory.content for each in await alice.all()] == ["tea", "tea", "cat and dog", "cat"]


class TestValidTime:
    async def test_a_change_ends_the_version_before_it_and_a_correction_takes_over_its_time(
        self, alice: UserMemories
    ) -> None:
        home = await alice.insert(memory("Ulm"), change=SAID)
        moved = memory("Bern", since="2026-03", is_change=True)
        await alice.update(home.key, moved, change=SAID, expected_version=1)
        corrected = memory("Basel", since="2026-03")
        await alice.update(home.key, corrected, change=SAID, expected_version=2)
        assert [await valid(alice, *day) for day in ((2026, 2, 28), (2026, 3, 1))] == [["Ulm"], ["Basel"]]

    async def test_what_is_limited_holds_until_then_and_what_begins_later_from_then(
        self, alice: UserMemories
    ) -> None:
        old = await alice.insert(memory("Ulm"), change=SAID)
        await alice.insert(memory("Bern", since="2026-06"), change=SAID)
        await alice.update(old.key, memory("Ulm", until="2026-05-31"), change=SAID, expected_version=1)
        gone = await alice.insert(memory("Rome", until="2026"), change=SAID)
        await alice.retire(gone.key, change=SAID, expected_version=1)
        assert [await valid(alice, *day) for day in ((2026, 5, 31), (2026, 6, 1))] == [["Ulm"], ["Bern"]]


async def valid(memories: UserMemories, *day: int) -> list[str]:
    return [each.memory.content for each in await memories.valid_at(date(*day))]


class TestAttention:
    async def test_what_is_in_doubt_unclear_or_linked_is_listed_until_it_is_accepted(
        self, alice: UserMemories
    ) -> None:
        old = await alice.insert(memory("The user lives in Ulm"), change=SAID)
        wrong: list[dict[str, Any]] = [
            {"flag": "In doubt."},
            {"unclear": "Which?"},
            {"may_contradict": [old.key]},
        ]
        odd = [await alice.insert(memory(f"odd {each}", **each), change=SAID) for each in wrong]
        found = await alice.flagged()
        assert [each.key for each in found] == [each.key for each in (old, *odd)]
        assert [each.memory.attention for each in found] == [
            f"It may contradict {odd[-1].key}.",
            "In doubt.",
            "Which?",
            f"It may contradict {old.key}.",
        ]
        for each in odd:
            assert (await alice.accept(each.key)).memory.attention == ""
        assert await alice.flagged() == []

    async def test_what_may_contradict_an_older_memory_is_recalled_before_it(
        self, alice: UserMemories
    ) -> None:
        old = await alice.insert(memory("The user lives in Ulm"), change=SAID)
        newer = memory("The user moved to Bern last week", may_contradict=[old.key])
        new = await alice.insert(newer, change=SAID)
        found = await alice.similar("The user lives in Ulm", 2)
        assert [each.key for each in found] == [new.key, old.key]

    async def test_a_link_is_shown_with_both_memories_until_one_is_retired_forgotten_or_accepted(
        self, ledger: Ledger, alice: UserMemories
    ) -> None:
        shown = Memories(ledger, "alice")
        old = await shown.add("The user lives in Ulm")
        new, newest = [
            await alice.insert(memory(each, may_contradict=[old.key]), change=SAID)
            for each in ("The user lives in Bern", "The user lives in Oslo")
        ]
        both = {old.key: [new.key, newest.key], new.key: [old.key], newest.key: [old.key]}
        now = datetime.now(UTC)
        for found in (
            await shown.list(),
            await shown.recall("Where does the user live?"),
            await shown.list(as_of=now),
            await shown.list(at=now.date()),
            [await shown.show(each) for each in both],
        ):
            assert {each.key: each.memory.may_contradict for each in found} == both
        assert (await alice.get(old.key)).memory.may_contradict == [], "it is stored once"
        newer = await alice.heads(filter={"may_contradict": old.key})
        assert [each.key for each in newer] == [new.key, newest.key]
        await shown.retire(new.key)
        assert (await shown.show(old.key)).memory.may_contradict == [newest.key]
        assert (await shown.show(new.key)).memory.may_contradict == []
        await shown.accept(old.key)
        assert await shown.flagged() == []
        assert (await shown.show(newest.key)).memory.may_contradict == []
        await shown.undo_one(newest.key)
        assert (await shown.show(old.key)).memory.may_contradict == [newest.key]
        assert {each.key for each in await shown.flagged()} == {old.key, newest.key}
        await shown.forget(old.key)
        assert (await shown.show(newest.key)).memory.may_contradict == []
        assert await shown.flagged() == []
        assert [each.memory.may_contradict for each in await shown.list(as_of=now)] == [[], []]

    async def test_of_many_memories_only_those_that_are_shown_are_read(
        self, ledger: Ledger, alice: UserMemories, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        writes = [alice.write(None, memory(f"Tale {number}"), SAID) for number in range(300)]
        old, *_ = await ledger.write(writes)
        odd = await alice.insert(memory("A zero: \0.", may_contradict=[old.key]), change=SAID)
        await alice.insert(memory("Another: \0."), change=SAID)
        counts = list[int]()

        def counted(rows: Iterable[Sequence[Any]], *read: Read) -> list[Version]:
            found = versions_in(rows, *read)
            counts.append(len(found))
            return found

        monkeypatch.setattr(reading, "versions_in", counted)
        operations = Memories(ledger, "alice")
        assert [each.key for each in await operations.flagged()] == [old.key, odd.key]
        assert sum(counts) <= 3, "a record with a zero character may be read without need"
        counts.clear()
        assert len(await operations.list(limit=50, newest_first=True)) == 50
        assert sum(counts) <= 50 + 2 + 1

    async def test_only_what_rules_wrote_and_nobody_changed_is_to_be_read_again(
        self, alice: UserMemories
    ) -> None:
        by_rules = SAID.model_copy(update={"model": "rules"})
        texts = ("one", "two", "three")
        kept, edited, _ = [
            await alice.insert(memory(each, read_by="rules"), change=by_rules) for each in texts
        ]
        await alice.insert(memory("by hand"), change=SAID)
        await alice.update(edited.key, memory("2", read_by="rules"), change=SAID, expected_version=1)
        found = await alice.read_by_rules()
        assert [each.memory.content for each in found] == ["one", "three"]
        assert (await alice.accept(kept.key)).memory.read_by == ""
        assert [each.memory.content for each in await alice.read_by_rules()] == ["three"]


class TestWhatIsNoMemory:
    @pytest.fixture
    async def bad(self, ledger: Ledger, alice: UserMemories) -> str:
        """Put a record among the memories that no program of ours would write."""
        await alice.insert(memory("green tea"), change=SAID)
        value: dict[str, Any] = {
            "nonsense": [1],
            "time": {"a": 1},
            "entities": 5,
            "quote": 3,
            "thread": [],
            "kind": {},
            "read_by": "rules",
        }
        by_rules = SAID.model_copy(update={"model": "rules"})
        written = await ledger.insert(alice.namespace, value, text="green tea tree", change=by_rules)
        return written.key

    async def test_readers_pass_over_it_and_name_it_once(
        self, bad: str, alice: UserMemories, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(2):
            assert [each.memory.content for each in await alice.all()] == ["green tea"]
            for mode in ("blend", "dense", "bm25", "hybrid"):
                found = await alice.similar("when was it green tea in May 2026", 5, mode=mode)
                assert [each.memory.content for each in found] == ["green tea"]
            assert [each.memory.content for each in await alice.as_of(datetime.now(UTC))] == ["green tea"]
            assert await alice.flagged() == [] and await alice.read_by_rules() == []
        assert caplog.text.count(bad) == 3, "in one line: its key, and two commands for it"
        assert "content: Field required" in caplog.text

    async def test_it_can_be_shown_as_it_is_and_forgotten(self, bad: str, alice: UserMemories) -> None:
        assert await alice.keys(bad[:6]) == [bad]
        assert [version.value["nonsense"] for version in await alice.history(bad)] == [[1]]
        with pytest.raises(BadInput, match=bad) as refused:
            await alice.get(bad)
        assert "forget" in refused.value.hint
        await alice.forget(bad, reason="asked", actor="alice")
        assert await alice.keys(bad) == []

    async def test_undo_takes_back_the_latest_change_of_a_memory(self, bad: str, alice: UserMemories) -> None:
        undone = await alice.undo(actor="alice")
        assert undone is not None
        assert undone.memory.content == "green tea"
        assert await alice.keys(bad) == [bad]


class TestIsolation:
    async def test_no_two_users_share_a_namespace(self, ledger: Ledger) -> None:
        for user in TRICKY:
            await UserMemories(ledger, user).insert(memory(f"tea of {user}"), change=SAID)
        for user in TRICKY:
            memories = UserMemories(ledger, user)
            assert [each.memory.content for each in await memories.all()] == [f"tea of {user}"]
            assert [each.memory.content for each in await memories.similar("tea", 50)] == [f"tea of {user}"]
            assert unescaped(memories.namespace[1]) == user
            assert "." not in "".join(memories.namespace)

    async def test_ids_that_play_tricks_are_refused(self, edge_ledger: Ledger) -> None:
        for user in ("", " ", "*", "a\x1fb", "a\nb", "\x00", "x" * 300, "\ud800", "\u2028"):
            with pytest.raises(BadInput):
                UserMemories(edge_ledger, user)

    async def test_a_users_everything_is_forgotten_and_nobody_elses(self, ledger: Ledger) -> None:
        for user in ("alice", "alic"):
            await UserMemories(ledger, user).insert(memory("tea"), change=SAID)
            await Inbox(ledger).add(user, Message(message_id="m1", thread="t", message="tea"))
        assert await UserMemories(ledger, "alice").forget_all(reason="", actor="") == 2
        assert await ledger.namespaces() == [
            user_namespace("alic", "inbox"),
            user_namespace("alic", "memories"),
        ]


class TestForgetting:
    async def test_the_messages_a_memory_came_from_go_with_it(self, ledger: Ledger) -> None:
        inbox, alice = Inbox(ledger), UserMemories(ledger, "alice")
        secret = "my dog is called Zorblax"
        turns = [f"user: {secret}", "assistant: a fine name"]
        await inbox.add("alice", Message(message_id="m1", thread="t1", message=secret))
        await inbox.add(
            "alice", Message(message_id="m2", thread="t1", message="and I like tea", preceding=turns)
        )
        await inbox.add("alice", Message(message_id="m3", thread="t1", message="a walk", preceding=turns))
        made = await alice.insert(memory("The user's dog is called Zorblax"), change=SAID)
        kept = await alice.insert(Memory(content="The user likes tea", message_id="m2"), change=SAID)
        for message in ("m1", "m2"):
            await inbox.close("alice", message, STORED)
        await alice.forget(made.key, reason="asked", actor="alice")
        left = [line async for line in ledger.export()]
        assert "Zorblax" not in "".join(left)
        assert await alice.all() == [kept]
        [pending] = await inbox.pending("alice")
        assert (pending["message_id"], pending["preceding"]) == ("m3", ["assistant: a fine name"])
        for name in ("m1", "m2"):
            again = await inbox.add("alice", Message(message_id=name, thread="t1", message=secret))
            assert again and again["rationale"] == "It was forgotten, and stays so."
        assert [each["message_id"] for each in await inbox.pending("alice")] == ["m3"]
        assert await inbox.close("alice", "m3", STORED)

    async def test_a_message_still_open_is_forgotten_with_its_memory(self, ledger: Ledger) -> None:
        inbox, alice = Inbox(ledger), UserMemories(ledger, "alice")
        await inbox.add("alice", Message(message_id="m1", thread="t1", message="Zorblax"))
        made = await alice.insert(memory("Zorblax"), change=SAID, idempotency_key="m1/0")
        await alice.forget(made.key, reason="", actor="")
        assert await inbox.pending("alice") == []
        assert not await inbox.close("alice", "m1", STORED)
        with pytest.raises(NotFound):
            await alice.insert(memory("Zorblax"), change=SAID, idempotency_key="m1/0")


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (("", "2026-12"), ("2027-01", ""), False),
        (("", "2026"), ("2026-12", ""), True),
        (("2026-03-01", "2026-03-31"), ("2026-04", "2026-05"), False),
        (("", ""), ("2020", "2021"), True),
        (("2026", ""), ("", "2025-12-31"), False),
    ],
)
def test_times_share_a_day_where_neither_ends_before_the_other_begins(
    one: tuple[str, str], other: tuple[str, str], shared: bool
) -> None:
    assert overlaps(one, other) is overlaps(other, one) is shared
