"""What may not hold together, across users, teams and organisations, and who may settle it."""

from pathlib import Path

import pytest

from mneme.api import contradictions
from mneme.api.contradictions import MAX_COMPARED
from mneme.api.discussions import TeamDiscussions
from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.cli.discussion.report import ending
from mneme.core.errors import BadAnswer, BadInput, Forbidden, NotFound
from mneme.core.settings import settings
from mneme.prompts.chat.memory_agent.comparing import Judgement, Judgements
from mneme.stores.cards.card import Lesson, Rule
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.discussions.discussions import Discussion, Discussions, Turn
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source
from mneme.stores.recall import Keep
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory, MemoryRecord, Past, overlaps
from mneme.stores.users.promotion import TeamFacts
from tests.doubles.scripts import script

WHY = Change(reason="a test", actor="test")
POSTGRES = "The reporting database is PostgreSQL."
DUCKDB = "The reporting database is DuckDB."
ROLES = """
teams:
  analysts: {ann: [read, write], rob: [read, write, promote, review]}
  ops: {eve: [read, write, review]}
  cooks: {eve: [read, write, review]}
organisations:
  acme:
    analysts: {fact: always, card: always}
    ops: {fact: always, card: always}
    cooks: {fact: always}
"""


@pytest.fixture
def ledger(bundled: Ledger, users: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    (tmp_path / "roles.yaml").write_text(ROLES)
    monkeypatch.setenv("MNEME_ROLES", str(tmp_path / "roles.yaml"))
    settings.cache_clear()
    return bundled


async def test_a_private_memory_that_contradicts_the_teams_fact_is_shown_until_it_is_settled(
    ledger: Ledger,
) -> None:
    ann, told = SharedMemory(ledger, "ann"), await Memories(ledger, "ann").add(DUCKDB)
    await Memories(ledger, "ann").add("My sister plays the harp.")
    facts = TeamFacts(ledger, "analysts")
    await facts.insert(Memory(content="The kitchen closes at ten."), change=WHY)
    known = await facts.insert(Memory(content=POSTGRES), change=WHY)
    (pair,) = await ann.contradictions(["analysts"])
    assert {pair.newer.text, pair.older.text} == {DUCKDB, POSTGRES} and "analysts" in pair.newer.line
    assert await ann.contradictions([]) == [], "a team that is not asked about"
    assert len(await ann.recall("Which is the reporting database?", teams=["analysts"])) == 2
    with pytest.raises(Forbidden, match="ann may not review"):
        await ann.settle_contradiction(pair.key, "older", ["analysts"])
    with pytest.raises(BadInput, match="Only cards"):
        await ann.settle_contradiction(pair.key, "trial", ["analysts"])
    with pytest.raises(NotFound, match="no contradiction"):
        await ann.settle_contradiction("77", "both", ["analysts"])
    await ann.settle_contradiction(pair.key[:6], "both", ["analysts"])
    assert await ann.contradictions(["analysts"]) == []
    await Memories(ledger, "ann").update(told.key, "The reporting database is MySQL.")
    (again,) = await ann.contradictions(["analysts"])
    await ann.settle_contradiction(again.key, "older", ["analysts"], reason="I was wrong")
    assert await ann.contradictions(["analysts"]) == [] and (await facts.get(known.key)).live
    history = await Memories(ledger, "ann").history(told.key)
    assert history[-1].change.reason == "I was wrong" and not history[-1].live


async def test_only_what_is_close_and_of_another_place_is_compared(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, facts, compared = SharedMemory(ledger, "ann"), TeamFacts(ledger, "analysts"), list[object]()
    kept = UserMemories(ledger, "ann")
    texts = [f"The reporting database number {number} is DuckDB." for number in range(60)]
    await ledger.write([kept.write(None, Memory(content=each), WHY) for each in texts])

    def noted(*periods: tuple[str, str]) -> bool:
        compared.append(periods)
        return overlaps(*periods)

    monkeypatch.setattr(contradictions, "overlaps", noted)
    with monkeypatch.context() as patched:
        patched.setattr(contradictions, "vectors_by_ids", None)
        assert await ann.contradictions(["analysts"]) == [], "all is in one place, and no vector is read"
    await facts.insert(Memory(content=POSTGRES), change=WHY)
    await ann.contradictions(["analysts"])
    assert 0 < len(compared) <= MAX_COMPARED, "the team's fact with the closest of the user's"


async def test_what_held_before_a_change_contradicts_nothing(ledger: Ledger) -> None:
    moved = Memory(content="The reporting moved.", past=[Past(content=DUCKDB, until="2026-01")])
    told = await UserMemories(ledger, "rob").insert(moved, change=WHY)
    await TeamFacts(ledger, "analysts").insert(Memory(content=POSTGRES), change=WHY)
    rob = SharedMemory(ledger, "rob")
    assert await rob.contradictions(["analysts"]) == []
    found = await rob.recall("Which is the reporting database?", teams=["analysts"])
    assert [each.text for each in found] == [POSTGRES, moved.content, f"Until 2026-01: {DUCKDB}"]
    assert not (await rob.promote(told.key, "analysts")).memory.past, "what held before stays its owner's"


async def test_a_fact_and_its_copy_are_one_side_and_what_was_made_of_a_fact_is_no_doubt_of_rules(
    ledger: Ledger,
) -> None:
    ann, rob = SharedMemory(ledger, "ann"), SharedMemory(ledger, "rob")
    told = await Memories(ledger, "ann").add("The nightly backup of the shop runs at 4 o'clock.")
    proposed = await ann.promote(told.key, "analysts")
    copy = await rob.review(proposed.key, "analysts", True)
    at_two = Memory(content="The nightly backup of the shop runs at 2 o'clock.")
    await TeamFacts(ledger, "ops").insert(at_two, change=WHY)
    (pair,) = await ann.contradictions(["analysts"])
    assert {pair.newer.owner, pair.older.owner} == {"analysts", "ops"}, "the team's, which says hers, too"
    script("judge", {"compare_memories": [Judgements(judgements=[])]})
    assert await ann.contradictions(["analysts"], "scripted:judge") == [], "one question, of one pair"
    shared = await TeamFacts(ledger, "analysts").head(copy.key)
    made = WHY.model_copy(update={"source": Source(records=[shared.reference])})
    for hour, change in ((3, made), (5, WHY)):
        claim = f"The nightly backup of the shop runs at {hour} o'clock."
        card = (await KnowledgeCards(ledger, "analysts").propose(Lesson(claim=claim), change=change)).card
        doubted = [each.older for each in await rob.contradictions(["analysts"]) if each.newer.key == card.id]
        assert (copy.key in {each.key for each in doubted}) == (change is WHY), "rules leave what it rests on"


async def test_times_that_do_not_meet_and_what_is_out_of_date_contradict_nothing(ledger: Ledger) -> None:
    memories, rob = Memories(ledger, "rob"), SharedMemory(ledger, "rob")
    await TeamFacts(ledger, "analysts").insert(Memory(content=POSTGRES, until="2025"), change=WHY)
    await memories.add(DUCKDB, since="2026-01-01")
    told = await memories.add("The office is at 12 Elm Street.")
    await rob.promote(told.key, "analysts")
    await memories.update(told.key, "The office is at 40 Elm Street.")
    assert await rob.contradictions(["analysts"]) == []


async def test_a_reviewer_settles_for_the_whole_team_and_not_for_another_one(ledger: Ledger) -> None:
    rob, ann, eve = (SharedMemory(ledger, name) for name in ("rob", "ann", "eve"))
    await TeamFacts(ledger, "cooks").insert(Memory(content=DUCKDB), change=WHY)
    await TeamFacts(ledger, "ops").insert(Memory(content=DUCKDB), change=WHY)
    await TeamFacts(ledger, "analysts").insert(Memory(content=POSTGRES), change=WHY)
    pairs = await rob.contradictions(["analysts"])
    assert {each.older.owner for each in pairs} == {"ops", "cooks"}, "and not ops with cooks"
    of_ops = next(each for each in pairs if each.older.owner == "ops")
    with pytest.raises(Forbidden, match="of the team ops"):
        await rob.settle_contradiction(of_ops.key, "newer", ["analysts"])
    with pytest.raises(Forbidden, match="ann may not review"):
        await ann.settle_contradiction(of_ops.key, "both", ["analysts"])
    await rob.settle_contradiction(of_ops.key, "both", ["analysts"])
    (left,) = await rob.contradictions(["analysts"], limit=1)
    assert left.older.owner == "cooks", "what is settled takes nobody's place"
    assert [each.older.owner for each in await ann.contradictions(["analysts"])] == ["cooks"]
    assert len(await eve.contradictions(["ops"])) == 1, "the other team looks for itself"


async def test_facts_of_one_team_that_were_linked_are_unlinked_or_one_is_taken_back(ledger: Ledger) -> None:
    rob, memories = SharedMemory(ledger, "rob"), Memories(ledger, "rob")
    for text in (POSTGRES, DUCKDB, "The reporting database is MySQL."):
        await rob.promote((await memories.add(text)).key, "analysts")
    own = [each for each in await rob.contradictions(["analysts"]) if each.newer.owner == "analysts"]
    pairs = [each for each in own if each.older.owner == "analysts"]
    assert len(pairs) == 3 and pairs[0].why == "It was linked when it was written."
    await rob.settle_contradiction(pairs[0].key, "both", ["analysts"])
    left = {each.key for each in await rob.contradictions(["analysts"])}
    assert pairs[0].key not in left and {each.key for each in pairs[1:]} <= left
    postgres = next(each for each in pairs if each.older.text == POSTGRES and each.key in left)
    await rob.settle_contradiction(postgres.key, "newer", ["analysts"])
    assert POSTGRES not in [each.memory.content for each in await TeamFacts(ledger, "analysts").all()]


async def test_cards_of_two_teams_are_tried_as_a_dispute_or_one_is_deprecated(ledger: Ledger) -> None:
    rob = SharedMemory(ledger, "rob")
    claims = {"ops": "An index on the day column makes reports 4 times faster.",
              "analysts": "An index on the day column makes reports 2 times faster."}  # fmt: skip
    cards = {team: KnowledgeCards(ledger, team) for team in claims}
    rules = [Rule(condition="a report by day", pattern="index the day column")]
    made = {
        team: await cards[team].propose(Lesson(claim=claim, rules=rules), change=WHY)
        for team, claim in claims.items()
    }
    (pair,) = await rob.contradictions(["analysts"])
    assert pair.newer.kind == "card"
    await rob.settle_contradiction(pair.key, "trial", ["analysts"])
    (dispute,) = await cards["analysts"].disputes.list()
    assert dispute.new.claim == claims["ops"] and dispute.new.solution.endswith("index the day column")
    assert (await cards["ops"].records.get(made["ops"].card.id)).status == "provisional"
    (pair,) = await rob.contradictions(["analysts"])
    keep: Keep = "newer" if pair.older.owner == "analysts" else "older"
    await rob.settle_contradiction(pair.key, keep, ["analysts"])
    assert (await cards["analysts"].records.get(made["analysts"].card.id)).status == "deprecated"
    assert await rob.contradictions(["analysts"]) == []


async def test_what_a_model_said_of_two_texts_is_kept_until_one_of_them_changes(ledger: Ledger) -> None:
    ann, rob, memories = SharedMemory(ledger, "ann"), SharedMemory(ledger, "rob"), Memories(ledger, "ann")
    told = await memories.add("Reports come out of DuckDB now.")
    facts = TeamFacts(ledger, "analysts")
    known = await facts.insert(Memory(content=POSTGRES), change=WHY)
    assert await ann.contradictions(["analysts"]) == [], "rules doubt nothing here"
    opposed = Judgement(fact=0, memory=0, reason="Another engine.", relation="unclear")
    script("sure", {"compare_memories": [Judgements(judgements=[opposed])]})
    for by in ("scripted:sure", "scripted:sure", "rules"):
        (pair,) = await ann.contradictions(["analysts"], by)
        assert pair.why == "Another engine.", "asked once, it is shown to whoever lists"
    assert await rob.contradictions(["analysts"]) == [], "what a model said of a private memory is private"
    script("calm", {"compare_memories": [Judgements(judgements=[])]})
    assert await ann.contradictions(["analysts"], "scripted:calm") == [], "another model is asked"
    assert await ann.contradictions(["analysts"], "scripted:calm") == []
    assert await ann.contradictions(["analysts"]) == []
    record = MemoryRecord.of(await facts.head(known.key))
    await facts.update(known.key, record.memory, change=WHY, expected_version=1)
    assert await ann.contradictions(["analysts"], "scripted:calm") == [], "it says the same, written anew"
    await memories.update(told.key, "Reports come out of DuckDB 2 now.")
    script("calm", {"compare_memories": [Judgements(judgements=[opposed])]})
    (pair,) = await ann.contradictions(["analysts"], "scripted:calm")
    await ann.settle_contradiction(pair.key, "both", ["analysts"])
    script("eager", {"compare_memories": [Judgements(judgements=[opposed])]})
    assert await ann.contradictions(["analysts"], "scripted:eager") == [], "a person has the last word"
    assert await ann.stale("analysts") == [], "verdicts are nobody's to settle"
    await memories.forget(told.key)
    assert not [line async for line in ledger.export(("users", "ann", "settled"))]
    assert not [line async for line in ledger.export() if "Another engine" in line or "DuckDB" in line]


async def test_a_list_that_breaks_off_keeps_what_was_answered(ledger: Ledger) -> None:
    ann = SharedMemory(ledger, "ann")
    for text in (DUCKDB, "The reporting database is Oracle."):
        await Memories(ledger, "ann").add(text)
    await TeamFacts(ledger, "analysts").insert(Memory(content=POSTGRES), change=WHY)
    await Memories(ledger, "ann").add("The reporting database is MySQL.")
    nothing = Judgements(judgements=[])
    half = script("half", {"compare_memories": [nothing, BadAnswer("Cut off.", ""), nothing]})
    with pytest.raises(BadAnswer):
        await ann.contradictions(["analysts"], "scripted:half")
    across = [each for each in await ann.contradictions(["analysts"]) if each.newer.owner != each.older.owner]
    assert {each.newer.text for each in across} == {POSTGRES}, (
        "of the latest text nothing is opposed any more"
    )
    assert half.left("compare_memories") == 1
    await ann.contradictions(["analysts"], "scripted:half")
    assert half.left("compare_memories") == 0, "only the other text is asked about"


async def test_a_verdict_on_teams_is_the_teams_where_whoever_asks_may_write(ledger: Ledger) -> None:
    for team, text in (("ops", DUCKDB), ("analysts", POSTGRES)):
        await TeamFacts(ledger, team).insert(Memory(content=text), change=WHY)
    script("calm", {"compare_memories": [Judgements(judgements=[])]})
    ann, rob = SharedMemory(ledger, "ann"), SharedMemory(ledger, "rob")
    assert len(await rob.contradictions(["analysts"])) == 1
    assert await ann.contradictions(["analysts"], "scripted:calm") == []
    assert await rob.contradictions(["analysts"]) == [], "the team's verdict"
    assert len(await SharedMemory(ledger, "eve").contradictions(["ops"])) == 1, "not the other team's"


async def test_a_fact_is_compared_with_cards_and_agreements_and_each_is_taken_back_alone(
    ledger: Ledger,
) -> None:
    rob, memories = SharedMemory(ledger, "rob"), Memories(ledger, "rob")
    cards, talks = KnowledgeCards(ledger, "analysts"), Discussions(ledger, "analysts")
    lesson = Lesson(claim="The reporting database is MySQL.")
    card = (await cards.propose(lesson, change=WHY)).card
    storage, menu = "The reporting database is PostgreSQL.", "The menu is soup."
    held = Discussion(id="d1", task="t", team={}, memory="intrinsic", ended="consensus")
    ended = held.model_copy(update={"document": {"Storage": storage, "Menu": menu}})
    await talks.insert(ended, change=WHY, key="d1")
    await talks.conversation("d1").add(Turn(number=1, speaker="a", title="A", message=POSTGRES))
    told = await memories.add(DUCKDB)
    pairs = await rob.contradictions(["analysts"])
    kinds = {frozenset((each.newer.kind, each.older.kind)): each for each in pairs}
    assert kinds.keys() == {
        frozenset(each) for each in (("fact", "card"), ("fact", "agreement"), ("card", "agreement"))
    }
    with_card, with_agreement = kinds[frozenset(("fact", "card"))], kinds[frozenset(("fact", "agreement"))]
    assert storage in with_agreement.older.text and "discussion d1" in with_agreement.older.line
    with pytest.raises(BadInput, match="Only cards"):
        await rob.settle_contradiction(with_card.key, "trial", ["analysts"])
    await rob.settle_contradiction(with_card.key, "newer", ["analysts"])
    assert (await cards.records.get(card.id)).status == "deprecated"
    await rob.settle_contradiction(with_agreement.key, "newer", ["analysts"], reason="it moved")
    talk = await talks.get("d1")
    assert talk.agreements == [f"Menu: {menu}"] and talk.document["Storage"] == storage
    assert ending(talk).endswith(f"Withdrawn since: Storage: {storage}")
    await talks.close(ended)
    assert (await talks.get("d1")).agreements == [f"Menu: {menu}"], "a run that goes on leaves it taken back"
    assert await rob.contradictions(["analysts"]) == []
    assert storage not in [each.text for each in await rob.recall(DUCKDB, teams=["analysts"])]
    assert (await memories.list())[0].key == told.key

    agreement, there = f"Storage: {storage}", TeamDiscussions(ledger, "analysts")
    (back,) = await there.withdrawn("d1")
    assert (back.agreement, back.reason, back.actor, back.version) == (agreement, "it moved", "user", 2)
    with pytest.raises(NotFound, match="no such agreement"):
        await rob.restore_agreement("d1", f"Menu: {menu}", "analysts")
    with pytest.raises(Forbidden, match="ann may not review"):
        await SharedMemory(ledger, "ann").restore_agreement("d1", agreement, "analysts")
    with pytest.raises(NotFound, match="There is no discussion d1"):
        await SharedMemory(ledger, "eve").restore_agreement("d1", agreement, "analysts")
    restored = await rob.restore_agreement("d1", agreement, "analysts", "it did not move")
    assert (restored.reason, restored.version) == ("it did not move", 3)
    assert await there.withdrawn("d1") == []
    assert (await talks.get("d1")).agreements == [agreement, f"Menu: {menu}"]
    again = [{each.newer.kind, each.older.kind} for each in await rob.contradictions(["analysts"])]
    assert again == [{"fact", "agreement"}], "it contradicts the fact as before"


async def test_what_another_team_linked_is_for_that_team_to_settle(ledger: Ledger) -> None:
    eve, memories = SharedMemory(ledger, "eve"), Memories(ledger, "eve")
    for text in (POSTGRES, DUCKDB):
        await eve.promote((await memories.add(text)).key, "cooks")
    assert len(await eve.contradictions(["cooks"])) >= 1
    assert await SharedMemory(ledger, "ann").contradictions(["analysts"]) == []
