"""All that is remembered, together: recall over kinds, sharing with a team, what a correction reaches."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.core.errors import BadInput, Forbidden, NotFound
from mneme.core.settings import settings
from mneme.stores.access import own_team, read_roles
from mneme.stores.cards.card import Lesson
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.discussions.discussions import Discussion, Discussions
from mneme.stores.episodes.episodic_memory import EpisodeRecord, EpisodicMemory
from mneme.stores.ledger.checking import problems_of
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source, team_namespace
from mneme.stores.provenance import MAX_TRACED, made_of, stale, steps
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from mneme.stores.users.promotion import TeamFacts
from tests.doubles.ledgers import forget

WHY = Change(reason="a test", actor="test")
QUESTION = "Which database does reporting use?"
ROLES = """
teams:
  analysts: {ann: [read, write], rob: [read, write, promote, review], bob: [read]}
"""


@pytest.fixture
def shared_server(users: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up a server with keys, on which three people share a team."""
    (tmp_path / "roles.yaml").write_text(ROLES)
    monkeypatch.setenv("MNEME_ROLES", str(tmp_path / "roles.yaml"))
    settings.cache_clear()


async def test_one_question_finds_facts_cards_and_agreements_with_their_origins(bundled: Ledger) -> None:
    await Memories(bundled, "ann").add("Reporting uses the database PostgreSQL.")
    await Memories(bundled, "ann").add("My dog Rex is four.")
    lesson = Lesson(claim="In the reporting database an index on day makes reports fast.")
    await KnowledgeCards(bundled, "analysts").propose(lesson, change=WHY)
    talks = Discussions(bundled, "analysts")
    ended = Discussion(
        id="d1",
        task="t",
        team={},
        memory="intrinsic",
        ended="consensus",
        document={"Storage": "The database of reporting is partitioned by day.", "Menu": "Soup on Fridays."},
    )
    await talks.insert(ended, change=WHY, key="d1")
    asked = SharedMemory(bundled, "ann")
    found = await asked.recall(QUESTION, teams=["analysts"])
    assert {each.kind for each in found} == {"fact", "card", "agreement"}
    assert not any("Rex" in each.text or "Soup" in each.text for each in found)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert "ann said" in next(each.line for each in found if each.kind == "fact")
    verbatim = await asked.recall(next(each.text for each in found if each.kind == "fact"))
    assert verbatim[0].score == 1, "no score is above 1, however the words agree"
    few = await asked.recall(QUESTION, teams=["analysts"], tokens=30)
    assert 0 < len(few) < len(found)
    assert await asked.recall("Who won the cup in 1954?", teams=["analysts"]) == []
    others = await SharedMemory(bundled, "bob").recall(QUESTION, teams=["cooks"])
    assert others == []


async def test_many_synopses_of_what_was_asked_leave_room_for_the_fact_that_answers_it(
    bundled: Ledger,
) -> None:
    await Memories(bundled, "ann").add(
        "Since the outage in May the reports run on a PostgreSQL in the other building."
    )
    episodes = EpisodicMemory(bundled, "analysts", "work")
    for day in range(1, 13):
        synopsis = f"[2026-03-{day:02}] {QUESTION} It was not found in {day} steps."
        record = EpisodeRecord(
            run=f"r{day}", episode="e", category="c", success=False, steps=day, synopses=[synopsis]
        )
        await episodes.keep(record, change=WHY)
    found = await SharedMemory(bundled, "ann").recall(QUESTION, teams=["analysts"], tokens=150)
    assert [each.kind for each in found].count("fact") == 1 and len(found) > 1
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


async def test_of_many_facts_that_are_alike_the_newest_are_shown(bundled: Ledger) -> None:
    """Within days as within years; and no synopsis that is as long as three takes their room."""
    memories, episodes = UserMemories(bundled, "ann"), EpisodicMemory(bundled, "analysts", "work")
    for day in range(1, 10):
        told = {"content": f"The red key hangs on hook {day * 37 % 10}.", "time": f"2026-03-{day:02}"}
        await memories.insert(Memory(**told), change=WHY)
        synopsis = f"[2026-03-{day:02}] Ann looked for the red key. It hung on a hook after {day} steps."
        record = EpisodeRecord(
            run=f"r{day}", episode="e", category="c", success=True, steps=day, synopses=[synopsis]
        )
        await episodes.keep(record, change=WHY)
    asked = "Ann looks for the red key. On which hook does it hang? She has been at it since noon."
    found = await SharedMemory(bundled, "ann").recall(asked, teams=["analysts"], tokens=120)
    facts = [each.origin[-10:] for each in found if each.kind == "fact"]
    assert len(facts) >= 3 and {"2026-03-09", "2026-03-08"} <= {*facts}


async def test_the_best_of_all_is_shown_however_many_short_facts_there_are(bundled: Ledger) -> None:
    """A long card that answers, beside short facts each of which has more score for a token."""
    claim = (
        "Reporting uses the database PostgreSQL 16: that one, on its own machine, is the database which "
        "reporting does use, with a copy for the night and another one for the yearly audit."
    )
    await KnowledgeCards(bundled, "analysts").propose(Lesson(claim=claim), change=WHY)
    memories = UserMemories(bundled, "ann")
    for kept in ("stamps", "coins", "birds", "trees", "songs", "stars"):
        await memories.insert(Memory(content=f"Ben has a database of {kept}."), change=WHY)
    found = await SharedMemory(bundled, "ann").recall(QUESTION, teams=["analysts"], tokens=90)
    assert found[0].kind == "card" and len(found) > 1


async def test_what_answers_one_sentence_of_a_long_message_is_found(bundled: Ledger) -> None:
    await Memories(bundled, "ann").add("I have moved to Turin.")
    message = (
        "Where did I live in June? Today is the tenth of October. I am filling in a form for the tax office, "
        "and it has eleven pages. If nobody knows, say that it is not known."
    )
    (found,) = await SharedMemory(bundled, "ann").recall(message)
    assert "Turin" in found.text


async def test_an_imported_fact_is_as_old_as_the_day_on_which_it_was_told(bundled: Ledger) -> None:
    memories = UserMemories(bundled, "ann")
    for number, time in enumerate(("2019-05-04T10:00:00+00:00", "", "last spring")):
        await memories.insert(Memory(content=f"Reporting {number} uses PostgreSQL.", time=time), change=WHY)
    found = await SharedMemory(bundled, "ann").recall(QUESTION)
    today = f"ann said, {date.today()}"
    assert [each.origin for each in found] == [today, today, "ann said, 2019-05-04"]


async def test_a_correction_reaches_what_was_shared_at_once(bundled: Ledger) -> None:
    memories, shared = Memories(bundled, "local"), SharedMemory(bundled, "local")
    told = await memories.add("Reporting uses the database PostgreSQL.")
    copy = await shared.promote(told.key, "analysts")
    assert [each.kind for each in await shared.trace(copy.key, team="analysts")] == ["fact", "fact"]
    assert not copy.memory.quote
    await memories.update(told.key, "Reporting uses the database DuckDB.", reason="it moved")
    found = await shared.recall(QUESTION, teams=["analysts"])
    assert [each.text for each in found] == ["Reporting uses the database DuckDB."]
    (marked,) = await shared.stale("analysts")
    assert marked.key == copy.key and "it moved" in marked.stale
    with_stale = await shared.recall(QUESTION, teams=["analysts"], include_stale=True)
    assert "out of date" in with_stale[-1].line
    await memories.rollback(told.key, 1)
    assert await shared.stale("analysts") == [], "it says again what the copy was made from"
    await memories.update(told.key, "Reporting uses the database SQLite.")
    await shared.settle(copy.key, True, "analysts")
    assert await shared.stale("analysts") == []
    await memories.retire(told.key)
    (_,) = await shared.stale("analysts")
    assert (await shared.settle(copy.key, False, "analysts")).version == 3
    assert await shared.stale("analysts") == []


async def test_a_card_is_named_with_and_without_its_prefix(bundled: Ledger) -> None:
    shared, why = SharedMemory(bundled, "local"), Source(records=["gone@1"])
    lesson, change = Lesson(claim="Index the day column."), WHY.model_copy(update={"source": why})
    card = (await KnowledgeCards(bundled, "analysts").propose(lesson, change=change)).card.id
    letters = card.removeprefix("card_")
    for name in (card, card[:9], letters, letters[:4]):
        assert next(each.key for each in await shared.trace(name, team="analysts")) == card
    assert (await shared.settle(letters[:4], True, "analysts")).key == card
    assert await shared.stale("analysts") == []
    await TeamFacts(bundled, "analysts").insert(Memory(content="Tea."), change=WHY, key=f"{letters[:4]}-fact")
    with pytest.raises(BadInput, match=f"2 ids begin with {letters[:4]}"):
        await shared.trace(letters[:4], team="analysts")


async def test_what_was_shared_says_what_its_source_says_now_once_it_is_renewed(bundled: Ledger) -> None:
    memories, shared = Memories(bundled, "local"), SharedMemory(bundled, "local")
    told = await memories.add("Reporting uses the database PostgreSQL.")
    copy = await shared.promote(told.key, "analysts")
    await memories.update(told.key, "Reporting uses the database DuckDB.")
    renewed = await shared.renew(copy.key, "analysts")
    assert renewed.version == 2 and renewed.text == "Reporting uses the database DuckDB."
    assert not renewed.stale and "as local says now" in renewed.made
    assert await shared.stale("analysts") == []
    assert not (await TeamFacts(bundled, "analysts").get(copy.key)).memory.quote, "its words stay the owner's"
    with pytest.raises(BadInput, match="one fact that still stands"):
        await shared.renew(told.key, "analysts")
    await memories.retire(told.key)
    with pytest.raises(BadInput, match="one fact that still stands"):
        await shared.renew(copy.key, "analysts")


async def test_a_memory_that_is_shared_again_corrects_what_was_shared_of_it(bundled: Ledger) -> None:
    memories, shared = Memories(bundled, "local"), SharedMemory(bundled, "local")
    told = await memories.add("The monthly report must be ready by 7 o'clock.")
    copy = await shared.promote(told.key, "analysts")
    assert not (await shared.promote(told.key, "analysts")).is_new, "it says so already"
    await memories.update(told.key, "The monthly report must be ready by 9 o'clock.")
    again = await shared.promote(told.key, "analysts")
    assert (again.key, again.version, again.is_new, again.beside) == (copy.key, 2, True, [])
    assert await shared.stale("analysts") == [] and await shared.contradictions(["analysts"]) == []
    (found,) = await shared.recall("When must the monthly report be ready?", teams=["analysts"])
    assert "9 o'clock" in found.text


async def test_what_is_forgotten_is_forgotten_where_it_was_shared(bundled: Ledger) -> None:
    memories, shared = Memories(bundled, "local"), SharedMemory(bundled, "local")
    told = await memories.add("Reporting uses the database PostgreSQL.")
    await shared.promote(told.key, "analysts")
    assert (await memories.forget(told.key)).records == 2
    assert await shared.recall(QUESTION, teams=["analysts"]) == []
    assert not [line async for line in bundled.export() if "PostgreSQL" in line]


async def test_what_is_shared_names_its_owner_and_is_forgotten_with_it(bundled: Ledger) -> None:
    memories, shared = Memories(bundled, "ines"), SharedMemory(bundled, "ines")
    told = await memories.add("The user's report uses the database PostgreSQL. Tomas and the user share it.")
    copy = await shared.promote(told.key, "analysts", reason="all ask for it")
    assert copy.memory.time == f"{told.at.astimezone():%Y-%m-%d}", "the day alone on which it was told"
    assert copy.memory.content == "ines's report uses the database PostgreSQL. Tomas and ines share it."
    assert [each.kind for each in await shared.recall(QUESTION, teams=["analysts"])] == ["fact"]
    (found,) = await SharedMemory(bundled, "bob").recall(QUESTION, teams=["analysts"])
    assert "shared by ines: all ask for it" in found.line
    await memories.update(told.key, "The user table of the report is in the database DuckDB.")
    renewed = await shared.renew(copy.key, "analysts")
    assert renewed.text == "The user table of the report is in the database DuckDB."
    await memories.forget(told.key)
    assert not [line async for line in bundled.export() if "report" in line]


async def test_a_circle_and_a_thousand_dependents_are_walked_to_their_end(bundled: Ledger) -> None:
    place = team_namespace("t", "facts")
    first = await bundled.insert(place, {"content": "A"}, text="A", change=WHY, key="a")
    of_a = WHY.model_copy(update={"source": Source(records=[first.reference])})
    second = await bundled.insert(place, {"content": "B"}, text="B", change=of_a, key="b")
    of_b = WHY.model_copy(update={"source": Source(records=[second.reference])})
    again = await bundled.update(place, "a", {"content": "A"}, text="A", change=of_b, expected_version=1)
    for number in range(1001):
        await bundled.insert(place, {"content": "C"}, text="", change=of_b, key=f"c{number}")
    assert await stale(bundled, [again.record, second.record]) == {}
    assert len(await made_of(bundled, [first.record])) == 1002
    assert len(await steps(bundled, first.record, forward=True)) == MAX_TRACED
    await bundled.retire(place, "b", change=WHY, expected_version=1)
    made = await made_of(bundled, [second.record])
    assert len(await stale(bundled, made)) == len(made) == 1002
    with bundled._log.database.reading() as _:
        assert problems_of(bundled._log.database) == []
    await forget(bundled, place, "b", reason="", actor="")
    assert problems_of(bundled._log.database) == []


@pytest.mark.usefixtures("shared_server")
class TestRoles:
    async def test_a_member_has_the_rights_of_the_role_and_a_stranger_none(self, bundled: Ledger) -> None:
        ann, rob, bob, eve = (SharedMemory(bundled, name) for name in ("ann", "rob", "bob", "eve"))
        told = await Memories(bundled, "ann").add("Reporting uses the database PostgreSQL.")
        assert await bob.recall(QUESTION, teams=["analysts"]) == [], "private until she shares it"
        assert (await ann.promote(told.key, "analysts")).is_proposed
        assert await bob.recall(QUESTION, teams=["analysts"]) == [], "and until somebody reviewed it"
        with pytest.raises(Forbidden, match=r"ann may not review .* rob may"):
            await ann.proposals("analysts")
        (proposed,) = await rob.proposals("analysts")
        accepted = await rob.review(proposed.key, "analysts", True)
        (seen,) = await bob.recall(QUESTION, teams=["analysts"])
        assert seen.key == accepted.key and await rob.proposals("analysts") == []
        assert await eve.recall(QUESTION, teams=["analysts"]) == [], "a team of her own has that name"
        with pytest.raises(Forbidden, match="bob may not write"):
            await bob.promote((await Memories(bundled, "bob").add("I like tea.")).key, "analysts")
        (_, hidden) = await bob.trace(accepted.key, team="analysts")
        assert hidden.kind == "of somebody else" and not hidden.text and not hidden.key
        with pytest.raises(NotFound):
            await bob.trace(told.key, team="analysts")
        why = "her own words"
        await Memories(bundled, "ann").update(told.key, "Reporting uses the database DuckDB.", reason=why)
        with pytest.raises(Forbidden, match="made from is of ann"):
            await rob.renew(accepted.key, "analysts")
        for who in (rob, bob):
            (marked,) = await who.stale("analysts")
            (again,) = await who.recall(QUESTION, teams=["analysts"], include_stale=True)
            assert marked.stale == again.stale == "What it was made from was corrected."
        await ann.promote(told.key, "analysts")
        (proposed,) = await rob.proposals("analysts")
        await rob.review(proposed.key, "analysts", True)
        (seen,) = await bob.recall(QUESTION, teams=["analysts"])
        assert (seen.key, seen.text) == (accepted.key, "Reporting uses the database DuckDB.")
        await Memories(bundled, "ann").update(told.key, "Reporting uses the database MySQL.", reason=why)
        (hers,) = await ann.stale("analysts")
        assert hers.stale.endswith(why)
        for step in (*await rob.reverify("analysts"), *await rob.trace(accepted.key, team="analysts")):
            assert why not in step.model_dump_json()
        lines = await bundled.records(team_namespace("analysts", "audit"))
        read = {(str(each.value["by"]), str(each.value["what"])) for each in lines}
        readers = {
            ("rob", "proposals"),
            ("bob", "recall"),
            ("bob", "trace"),
            ("bob", "stale"),
            ("ann", "stale"),
        }
        assert readers < read and "eve" not in {by for by, _ in read}
        erased = await Memories(bundled, "ann").forget(told.key)
        assert erased.left == ["bob, rob, who read the memory of analysts: their conversations stay"]

    async def test_forget_names_also_who_read_what_was_made_of_it_in_other_words(
        self, bundled: Ledger
    ) -> None:
        told = await Memories(bundled, "rob").add("Reporting uses the database PostgreSQL.")
        source = Source(records=[(await UserMemories(bundled, "rob").head(told.key)).reference])
        lesson, made = Lesson(claim="Index the day column."), WHY.model_copy(update={"source": source})
        await KnowledgeCards(bundled, "analysts").propose(lesson, change=made)
        await SharedMemory(bundled, "bob").recall("Which column needs an index?", teams=["analysts"])
        erased = await Memories(bundled, "rob").forget(told.key)
        assert "bob, who read the memory of analysts: their conversations stay" in erased.left

    async def test_an_accepted_proposal_is_a_fact_also_where_it_ends_in_the_middle(
        self, bundled: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ann, rob, bob = (SharedMemory(bundled, name) for name in ("ann", "rob", "bob"))
        told = await Memories(bundled, "ann").add("Reporting uses the database PostgreSQL.")
        proposed, write = await ann.promote(told.key, "analysts"), Ledger.write

        async def write_and_end(*given: Any) -> None:
            await write(*given)
            raise KeyboardInterrupt

        with monkeypatch.context() as here:
            here.setattr(Ledger, "write", write_and_end)
            with pytest.raises(KeyboardInterrupt):
                await rob.review(proposed.key, "analysts", True)
        assert await rob.proposals("analysts") == []
        assert [each.text for each in await bob.recall(QUESTION, teams=["analysts"])] == [told.memory.content]

    def test_a_team_that_is_shared_keeps_its_name(self) -> None:
        assert own_team("ann", "analysts") == "analysts"
        assert own_team("eve", "analysts") == "eve/analysts"
        with pytest.raises(Forbidden):
            own_team("bob", "analysts")
        assert own_team("bob", "analysts", "read") == "analysts"

    async def test_what_a_team_opens_the_others_of_its_organisation_see_and_nobody_else(
        self, bundled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = "organisations: {acme: {analysts: {}, ops: {fact: always, card: measured, pair: never}}}"
        (tmp_path / "open.yaml").write_text(f"{ROLES}  cooks: {{bob: [read]}}\n{opened}")
        monkeypatch.setenv("MNEME_ROLES", str(tmp_path / "open.yaml"))
        settings.cache_clear()
        await TeamFacts(bundled, "ops").insert(
            Memory(content="Reporting uses the database Oracle."), change=WHY
        )
        cards = KnowledgeCards(bundled, "ops")
        for claim in ("Reporting databases need an index.", "Reporting databases need a replica."):
            card = (await cards.propose(Lesson(claim=claim), change=WHY)).card
        head = await cards.records.head(card.id)
        verified = {**head.value, "status": "verified"}
        await bundled.update(
            head.namespace, head.key, verified, text=None, change=WHY, expected_version=head.version
        )
        seen = await SharedMemory(bundled, "ann").recall(QUESTION, teams=["analysts"])
        assert {each.text for each in seen} == {"Reporting uses the database Oracle.", card.claim}
        assert {each.owner for each in seen} == {"ops"}
        assert all(each.origin.startswith("ops, ") for each in seen)
        ann = SharedMemory(bundled, "ann")
        for each in seen:
            (first,) = await ann.trace(each.key, team="analysts")
            assert first.text.startswith(each.text), "what is shown can be traced"
        unproven = next(each.key for each in await cards.records.heads() if each.key != card.id)
        for key, who in ((unproven, "ann"), (card.id, "bob")):
            with pytest.raises(NotFound):
                await SharedMemory(bundled, who).trace(key, team="analysts" if who == "ann" else "cooks")
        readers = await bundled.records(team_namespace("ops", "audit"))
        assert {str(each.value["by"]) for each in readers} == {"ann"}
        assert await SharedMemory(bundled, "bob").recall(QUESTION, teams=["cooks"]) == []

    @pytest.mark.parametrize(
        "text",
        [
            "teams: [",
            "teams: {a: {b: [own]}}",
            "team: {}",
            "organisations: {o: {a: {fact: measured}}}",
            "stale: {a: {fact: verify}}",
            "agents: {a: {cook: [fact]}}",
            "agents: {a: {expert: [secret]}}",
        ],
    )
    def test_a_roles_file_with_a_fault_is_refused(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "broken.yaml"
        path.write_text(text)
        with pytest.raises(BadInput, match=r"broken\.yaml"):
            read_roles(path)
