"""Rules keep what is said in the user's words, correct what is unmistakable, and change nothing else."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, compare_memories
from mneme.prompts.chat.memory_agent.reading import MAX_ITEMS, MAX_STATED, Candidate, Incoming, read_message
from mneme.prompts.chat.memory_agent.rewriting import Pair, rewrite_memory
from mneme.prompts.chat.paper_versions import (
    Candidates,
    Composing,
    ToolChoice,
    ToolChoices,
    ToolGiven,
    Upsert,
    UpsertRoute,
    choose_tools,
    compose_memories,
    route_message,
    route_upsert,
)
from mneme.rules.registry import answer as by_rule

NOW = "2026-11-20T10:00:00"


def contents(message: str, *preceding: str) -> list[str]:
    incoming = Incoming(message=message, preceding=list(preceding), time=NOW)
    read = read_message.verify(incoming, by_rule(read_message, incoming))
    return [each.content for each in read.memories]


def relations(fact: str, memories: list[str], said: str = "", before: str = "") -> dict[int, str]:
    facts, preceding = [Fact(content=fact, said=said or fact)], [f"user: {before}"] if before else []
    given_ = Comparing(facts=facts, memories=memories, preceding=preceding)
    judged = compare_memories.verify(given_, by_rule(compare_memories, given_)).judgements
    return {each.memory: each.relation for each in judged}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("I drink coffee", ["I drink coffee."]),
        ("I love jazz", ["I love jazz."]),
        ("i hate cilantro", ["i hate cilantro."]),
        ("I used to work at Apple", ["I used to work at Apple."]),
        ("Mia (4) and Leo (7)", ["Mia (4) and Leo (7)."]),
        ("Always run `make lint` before committing.", ["Always run `make lint` before committing."]),
        ("Mrs. Lee teaches me piano. She's 80!", ["Mrs. Lee teaches me piano. She's 80!"]),
        ("A fair price for a quad? Ours is from 2011.", ["A fair price for a quad? Ours is from 2011."]),
        ("nice, that compiled first try", []),
        ("right, that flat in Bath has 3 rooms", ["right, that flat in Bath has 3 rooms."]),
        ("right, that's my brother Tom", ["right, that's my brother Tom."]),
        ("right, off to my new job at Acme", ["right, off to my new job at Acme."]),
        ("am a nurse", ["am a nurse."]),
        ("did I mention I'm moving to Oslo?", ["did I mention I'm moving to Oslo?"]),
        ("be concise", ["be concise."]),
        (
            "explain mortgages to me, I'm a first time buyer",
            ["explain mortgages to me, I'm a first time buyer."],
        ),
        ("If I ask for wine, suggest something dry", ["If I ask for wine, suggest something dry."]),
        ("I run at 6 a.m. every day", ["I run at 6 a.m. every day."]),
        ("Any venue you suggest must be step-free", ["Any venue you suggest must be step-free."]),
        ("I have a dog. My sister Ann sails.", ["I have a dog.", "My sister Ann sails."]),
        ("My knee hurts, any tips?", ["My knee hurts, any tips?"]),
        ("Thanks! I don't eat meat anymore", ["I don't eat meat anymore."]),
        ("Any gift for my aunt Ines? She paints.", ["Any gift for my aunt Ines? She paints."]),
        ("Remember that Bo is 7.", ["Remember that Bo is 7."]),
        ("Actually, Bo is a hero.", ["Actually, Bo is a hero."]),
        ("Write to me in German.", ["Write to me in German."]),
        ("Can you believe my aunt is 90?", ["Can you believe my aunt is 90?"]),
        ("The recipe takes 200 g of flour.", ["The recipe takes 200 g of flour."]),
        ("We sold the boat. It cost 9k.", ["We sold the boat. It cost 9k."]),
        ("The recipe for pancakes, please", []),
        ("Am I glad that my son passed!", ["Am I glad that my son passed!"]),
        ("Forget-me-nots are my favourite flowers.", ["Forget-me-nots are my favourite flowers."]),
        ("Forget my PIN and note that Dr. Lee is ill.", ["Forget my PIN and note that Dr. Lee is ill."]),
        ("Hi I'm Yuki", ["Hi I'm Yuki."]),
        ("Hi Anna, I moved to Rome", ["Hi Anna, I moved to Rome."]),
        ("Thanks Anna, the wifi password is blue.", ["Thanks Anna, the wifi password is blue."]),
        ("Let's meet Anna on Friday.", ["Let's meet Anna on Friday."]),
        ("Ich wohne in Bonn. Wo wohnst du?", ["Ich wohne in Bonn."]),
        ("I was wrong before. The moor is wet.", ["I was wrong before. The moor is wet."]),
        ("Bo: My mistake! Sorry. My aunt is 70.", ["Bo: My mistake! Sorry. My aunt is 70."]),
        ("My aunt is 70. Scratch that.", ["My aunt is 70."]),
        (
            "Actually, I work on ward 9, not ward 6. She is allergic to nuts.",
            ["Actually, I work on ward 9, not ward 6.", "She is allergic to nuts."],
        ),
        (
            "Sorry, the demo is on Friday, not Monday. It takes two hours.",
            [
                "Sorry, the demo is on Friday, not Monday.",
                "the demo is on Friday, not Monday. It takes two hours.",
            ],
        ),
        ("trabajo en una panadería", ["trabajo en una panadería."]),
        ("我住在北京。", ["我住在北京。"]),
    ],
)
def test_a_statement_is_kept_in_the_users_words(message: str, expected: list[str]) -> None:
    found = contents(message)
    assert [each.rstrip(".") for each in found] == [each.rstrip(".") for each in expected]


@pytest.mark.parametrize(
    "message",
    [
        "Anna is a nurse.", "Anna works at night.", "The printer jams often.", "Ole eats salmon.",
        "Roses are by the gate.", "Milk is cheap.", "Tom has diabetes.", "Lisbon is sunny.", "The dog barks.",
        "Sara plays cello.", "The bakery closed.", "Kim drives a van.", "The wifi drops daily.",
        "Lunch is at noon.", "Bees like lavender.", "anna works nights", "The heating broke.",
        "The roof leaks", "Cats hate water.", "Olga went home.", "The upstairs tenant smokes.",
        "Cars park outside.", "Trains stop at seven.", "Birds sing.",
    ],
)  # fmt: skip
def test_a_subject_and_a_verb_are_a_statement_however_short(message: str) -> None:
    assert [each.rstrip(".") for each in contents(message)] == [message.rstrip(".")]


@pytest.mark.parametrize(
    "message",
    [
        "That is great.", "It works.", "Sounds good.", "Makes sense.", "This works well.", "It rains again.",
        "That helps a lot.", "You are right.", "The answer is wrong.", "The joke was funny.", "Time flies.",
        "The first option sounds best.", "The summary looks good.", "gosh its cold today", "Well played.",
        "Hello Anna.", "Happy birthday, Tom!", "Let us start.", "Symptoms of flu",
        "Many thanks indeed.", "Dinner ideas", "Problem solved.", "Is Anna a nurse?", "What a mess.",
    ],
)  # fmt: skip
def test_a_short_reaction_is_no_statement(message: str) -> None:
    assert contents(message) == []


def test_a_pronoun_at_the_beginning_keeps_what_was_said_before() -> None:
    kept = contents("She is 9.", "user: My cat Mia is ill. What now?", "assistant: Oh no.")
    assert kept == ["My cat Mia is ill. She is 9."]
    assert contents("It's black.", "user: My cat is called Mo.") == ["My cat is called Mo. It's black."]
    corrected = contents("It's ward 9, not ward 6. She is allergic to nuts.", "user: My sister Mia visits.")
    assert corrected[1] == "My sister Mia visits. She is allergic to nuts.", "nobody else can be meant"


@pytest.mark.parametrize(
    "message",
    [
        "", "   ", "What do we know about Max?", "where does my sister live",
        "Write me a poem about autumn.", "Thanks, that was helpful!", "Hello there!", "ok cool", "lol",
        "explain photosynthesis", "haha nice one", "heyyy", "Good night, talk to you tomorrow",
        "choice, cheers", "respect", "aye cheers pal", "I agree", "I'm just testing", "that made me laugh",
        "I'd like to know how vaccines work", "where is Timbuktu", "meaning of ephemeral", "muchas gracias",
        "Summarise this text: Bo is 7. My wife sings.", '"I like tea"',
    ],
)  # fmt: skip
def test_what_is_surely_nothing_is_discarded_with_a_reason(message: str) -> None:
    route = by_rule(route_message, Composing(message=message, time=NOW))
    assert (route.route, bool(route.rationale)) == ("discard", True)
    assert contents(message) == []


@pytest.mark.parametrize(
    ("fact", "memory", "relation"),
    [
        ("I work at Google.", "I work at Google", "duplicate"),
        ("I used to work at Apple.", "I work at Google.", "unclear"),
        ("I don't eat meat anymore.", "I'm vegan.", "unclear"),
        ("I moved to Denver.", "I live in Boston.", "unclear"),
        ("My friend Ann lives in house 1.", "My friend Bob lives in house 2.", ""),
        ("I like tea.", "My brother likes tea.", ""),
        ("I like tea.", "I like coffee.", ""),
        ("The user used to work at Apple.", "The user works at Google.", "unclear"),
        ("The user doesn't eat meat anymore.", "The user is vegan.", "unclear"),
        ("The MSRV is 1.74 now.", "Ledgerd has an MSRV of 1.70.", "unclear"),
        ("The user moved to Denver.", "The user lives in Boston.", "unclear"),
        ("The user's rent is 950 euros.", "The user's rent is 900 euros.", "unclear"),
        ("The user's friend Ann lives in house 1.", "The user's friend Bob lives in house 2.", ""),
        ("The user likes tea.", "The user's brother likes tea.", ""),
        ("The user likes tea.", "The user likes coffee.", ""),
        ("Anna from work moved to Berlin.", "Emily works as a nurse.", ""),
        ("Tom left the band.", "My band has four members.", "unclear"),
        ("Fact 2: my locker 2 is red.", "Fact 1: my locker 1 is blue.", ""),
        ("My locker 2 is red now.", "My locker 1 is blue.", ""),
        ("Box 3 holds pens.", "Box 4 holds tape.", ""),
        ("On day 3 the dose is 5 mg.", "On day 4 the dose is 6 mg.", ""),
        ("My locker 1 has the code 4711.", "My locker 1 has the code 4712.", "unclear"),
        ("Actually, Tom is older than Ben.", "Tom is older than Max.", ""),
    ],
)
def test_only_a_repetition_is_a_duplicate_and_a_contradiction_is_linked(
    fact: str, memory: str, relation: str
) -> None:
    assert relations(fact, [memory]).get(0, "") == relation


@pytest.mark.parametrize(
    ("said", "before", "memories", "corrected"),
    [
        ("It's ward 9, not ward 6.", "", ["The user works on ward 6.", "The user sails."], "on ward 9"),
        ("Sorry, not Tuesday but Thursday", "The vet is on Tuesday.", ["The vet is on Tuesday."], "Thursday"),
        ("Sorry, I meant Emily", "My sister is Emma.", ["My sister is Emma."], "is Emily"),
        ("Actually, I work at Apple.", "I work at Google.", ["I work at Google."], "work at Apple"),
        (
            "Actually, Max is a Labrador mix, not a purebred.",
            "My dog Max is a golden retriever. He loves playing fetch.",
            ["My dog Max is a golden retriever. He loves playing fetch."],
            "My dog Max is a Labrador mix",
        ),
        ("It's 8444, not 8443.", "The port is 8443.", ["The port is 8443.", "Staging is on 8443."], ""),
        (
            "Actually, Max is a Labrador mix, not a golden retriever.",
            "",
            ["The user's dog Max is a golden retriever."],
            "The user's dog Max is a Labrador mix.",
        ),
        ("Sorry, Thursday, not Tuesday", "We fly on Tuesday.", ["The user's job starts on Tuesday."], ""),
        ("I work in Leeds, not London", "", ["The user's sister works in London."], ""),
        ("Actually I work at home today", "I work at Google.", ["I work at Google."], ""),
        ("Actually I'm Canadian.", "I'm vegan.", ["I'm vegan."], ""),
        ("Actually, I like tea.", "I like coffee.", ["I like coffee."], ""),
        ("Actually, Ole is black, not grey.", "", ["My cat Ole is grey."], "My cat Ole is black."),
        ("Ole is black, not grey.", "", ["Ole has a grey couch."], ""),
        ("The printer is black, not grey.", "", ["The cat is grey."], ""),
        (
            "Actually, Leo lives in Porto, not Lisbon.",
            "",
            ["My brother Leo lives in Lisbon."],
            "Leo lives in Porto.",
        ),
        (
            "We're doing Naples instead of Rome for the jubilee.",
            "",
            ["We're going to Rome for our jubilee."],
            "to Naples",
        ),
        ("Leo lives in Porto, not Lisbon.", "", ["Leo's sister lives in Lisbon."], ""),
        ("Leo's sister lives in Porto, not Lisbon.", "", ["Leo lives in Lisbon."], ""),
        ("Anna lives in Porto, not Lisbon.", "", ["My brother married Anna in Lisbon."], ""),
        ("I take the bus instead of the train on Mondays.", "", ["I take the train to work."], ""),
        ("Scratch that, the rent is 950.", "Our rent is 900 euros.", ["Our rent is 900 euros."], "950 euros"),
        ("No wait, it's on Friday", "The demo is on Monday.", ["The demo is on Monday."], "on Friday"),
        ("Actually, I also work at Apple.", "I work at Google.", ["I work at Google."], ""),
        (
            "No wait, Bea is 13, omg she would laugh",
            "Bea is 3, I make her a hat",
            ["Bea is 3, I make her a hat."],
            "",
        ),
        ("Actually I have 3 cats.", "My sister has 2 cats.", ["My sister has 2 cats."], ""),
        ("Sorry, the bus is 5 minutes late.", "The bus is at 9:30.", ["The bus is at 9:30."], ""),
        ("No, it's Thursday", "The vet is on Tuesday.", ["The vet is on Tuesday."], "on Thursday"),
        ("No, the wifi is Oak.", "Our wifi is called Elm.", ["Our wifi is called Elm."], "called Oak"),
        ("Actually it's Friday today.", "The demo is on Monday.", ["The demo is on Monday."], ""),
        ("I'd rather live in Porto, not Lisbon.", "", ["I live in Lisbon."], ""),
        ("I dreamt I lived in Rome instead of Paris.", "", ["I live in Paris."], ""),
        ("Actually, Anna is 5.", "Anna has 2 children.", ["Anna has 2 children."], ""),
        ("Actually, she lives in Porto.", "My brother lives in Lisbon.", ["My brother lives in Lisbon."], ""),
        ("No meat on Friday.", "No meat on Monday.", ["No meat on Monday."], ""),
        ("Actually, my boss is Anna.", "My boss's wife is Carla.", ["My boss's wife is Carla."], ""),
        ("I was born in Porto, not Lisbon.", "Leo lives in Lisbon.", ["Leo lives in Lisbon."], ""),
        ("She lives in Porto, not Lisbon.", "My son lives in Lisbon.", ["My son lives in Lisbon."], ""),
        (
            "He lives in Porto, not Lisbon.",
            "My son lives in Lisbon.",
            ["My son lives in Lisbon."],
            "in Porto",
        ),
        ("I have 2 cats, not 3.", "Anna has 3 dogs.", ["Anna has 3 dogs."], ""),
        ("Leo was born in Porto, not Lisbon.", "", ["My brother Leo lives in Lisbon."], ""),
        ("At work I use Jira, not Trello.", "", ["At home I use Trello."], ""),
        ("Actually, I live with Anna.", "I live in Leeds.", ["I live in Leeds."], ""),
        ("Actually, I lived in Leeds.", "I live in London.", ["I live in London."], ""),
        ("Actually, Python 3.13 is out.", "We use Python 3.11.", ["We use Python 3.11."], ""),
        ("Wait, it's Sunday.", "Is the shop open on Monday?", ["The shop opens on Monday."], ""),
        ("It's 5, not 8.", "Is the pool 8 m deep?", ["The pool costs 8 euros."], ""),
        ("Actually, they are in Rome.", "My brother is in Paris.", ["My brother is in Paris."], ""),
        ("Sorry, they are in box 5.", "The keys are in box 4.", ["The keys are in box 4."], "box 5"),
        ("Actually, he moved to Bruges.", "We moved to Ghent.", ["We moved to Ghent."], ""),
        ("Sorry, she is from 2014.", "The car is from 2012.", ["The car is from 2012."], ""),
        ("Anna is a nurse, not a teacher.", "", ["Anna met a teacher."], ""),
        ("Anna is a nurse, not a teacher.", "", ["My friend Anna is a teacher."], "Anna is a nurse"),
        ("Leo is 9, not 8.", "", ["Leo has 8 cats."], ""),
        ("Eva is from Bergen, not Oslo.", "", ["Eva got a letter from Oslo."], ""),
        ("Anna is not a teacher but she loves art.", "", ["Anna is a teacher."], ""),
        ("I drink not only tea but coffee.", "", ["I drink only tea."], ""),
        ("Sorry, not my car but my bike is red.", "My car is red.", ["My car is red."], ""),
        ("It is not red but is blue.", "My car is red.", ["My car is red."], ""),
        ("Actually, our house has 2 floors.", "Our house has 3 rooms.", ["Our house has 3 rooms."], ""),
        ("Sorry, it's 4712.", "My code is 4711.", ["My code is 4711."], "4712"),
        ("Anna is a doctor, not a nurse.", "", ["Anna thinks Bo is a nurse."], ""),
        ("On Sundays we eat at 9, not at 7.", "", ["We eat at 7 on workdays."], ""),
        ("The old shed has the skis, not the tents.", "", ["The new shed has the tents."], ""),
        ("Mia is 9, not 8.", "", ["Mia told me that her dog is 8."], ""),
        ("Actually, Anna is 5.", "Anna thinks her boy is 4.", ["Anna thinks her boy is 4."], ""),
        ("I work on ward 9, not ward 6.", "", ["I think Anna works on ward 6."], ""),
        (
            "Mia is a doctor, not a nurse.",
            "",
            ["My sister Mia lives in Ghent. She is a nurse."],
            "She is a doctor.",
        ),
        ("Actually, Tom is older than Ben.", "Tom is older than Max.", ["Tom is older than Max."], ""),
        ("Actually, Tom is as old as Ben.", "Tom is as old as Max.", ["Tom is as old as Max."], ""),
        ("Tom is older than Ben, not Max.", "", ["Tom is older than Max."], "older than Ben."),
        ("Sorry, I don't work at Bosch.", "I work at Siemens.", ["I work at Siemens."], ""),
        ("Actually, I eat at home.", "I eat at noon.", ["I eat at noon."], ""),
    ],
)
def test_a_correction_changes_a_memory_that_alone_can_be_meant(
    said: str, before: str, memories: list[str], corrected: str
) -> None:
    (fact,) = contents(said)
    found = relations(fact, memories, said, before)
    assert ("correction" in found.values()) == bool(corrected)
    if corrected:
        pair = Pair(fact=fact, message=said, memory=memories[0], outdated="given")
        assert corrected in by_rule(rewrite_memory, pair).content


def test_a_correction_keeps_all_else_of_the_memory() -> None:
    memory = "The user's dog Max is a golden retriever. He loves playing fetch."
    (fact,) = contents("Actually, Max is a Labrador mix.")
    pair = Pair(fact=fact, message="Actually, Max is a Labrador mix.", memory=memory, outdated="given")
    assert by_rule(rewrite_memory, pair).content.endswith("He loves playing fetch.")


def test_a_memory_has_its_quote_and_its_names() -> None:
    incoming = Incoming(message="btw I adopted a cat. My brother Max is a baker!", time=NOW)
    _, fact = by_rule(read_message, incoming).memories
    assert fact.quote in incoming.message
    assert fact.entities == ["Max"]


def test_days_and_months_are_no_names_but_where_one_may_be_a_person() -> None:
    incoming = Incoming(message="In April we meet Bo on Mondays. We're in Leuven. April is our landlady.")
    memories = by_rule(read_message, incoming).memories
    assert [each.entities for each in memories] == [["Bo"], ["Leuven"], ["April"]]


def test_two_hundred_friends_in_numbered_houses_stay_two_hundred() -> None:
    said = [f"My friend {chr(65 + n // 20)}o{chr(97 + n % 20)} lives in house {n}." for n in range(200)]
    (memory, *_) = found = contents(" ".join(said))
    assert len(found) == MAX_STATED
    assert all(each.split("My friend ")[1].rstrip(".") in " ".join(found) for each in said)
    assert relations(found[1], [memory]) == {}


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.text(max_size=80))
def test_any_words_give_valid_answers(message: str, noise: str) -> None:
    found = contents(message, f"user: {noise}", "assistant: Max is nice.")
    relations(found[0] if found else message, ["The user's dog Max likes tea.", noise], message, noise)


@pytest.mark.parametrize(
    "piece", ["a", "my dog likes fish and ", "oh, ", "I think that ", '"', "his ", "text: ", "not "]
)
def test_huge_messages_are_quick(piece: str) -> None:
    message = piece * (200_000 // len(piece))
    started = time.thread_time()  # CPU seconds, which a busy machine does not make more
    contents(message, f"user: {message}")
    assert time.thread_time() - started < 5


def test_versions_1_and_2_follow_the_same_rules() -> None:
    memories = ["The user lives in Rome.", "The user works on ward 6. The user sails."]
    given_ = ToolGiven(message="It's ward 9, not ward 6. I like tea.", memories=memories, time=NOW)
    update, insert = choose_tools.verify(given_, by_rule(choose_tools, given_)).calls
    assert (update.name, update.index) == ("update_memory", 1)
    assert (insert.name, insert.quote) == ("insert_memory", "I like tea.")
    other = Upsert(fact="The user likes tea.", message="", memories=memories)
    assert by_rule(route_upsert, other).index == -1


def test_checks_reject_only_what_is_certain() -> None:
    incoming = Composing(message="I like tea.")

    def candidate(**changes: str) -> Candidates:
        fields = {"content": "The user likes tea.", "quote": "I like tea", "kind": "semantic"} | changes
        return Candidates(memories=[Candidate.model_validate(fields)])

    compose_memories.verify(incoming, candidate(content="The user has PIN 4711."))
    for wrong in ({"quote": "I love milk"}, {"quote": " "}, {"content": ""}):
        with pytest.raises(ValueError, match=r"memories\[0\]"):
            compose_memories.verify(incoming, candidate(**wrong))
    upsert = Upsert(fact="", message="", memories=["one"])
    for route, index in (("update", 1), ("update", -1), ("insert", 0)):
        with pytest.raises(ValueError, match="index"):
            route_upsert.verify(upsert, UpsertRoute(rationale="", route=route, index=index))
    call = ToolChoice(name="update_memory", quote="I like tea", index=3)
    with pytest.raises(ValueError, match="not among"):
        choose_tools.verify(ToolGiven(message="I like tea."), ToolChoices(calls=[call]))


def test_the_wording_numbers_candidates_and_marks_data() -> None:
    system, user = route_upsert.wording(Upsert(fact="f", message="m", memories=["one", "two"]))
    assert "[0] one\n[1] two" in user
    assert "-1" in system
    for prompt in (read_message, compare_memories, rewrite_memory, compose_memories, choose_tools):
        assert "data" in prompt.system
        assert "Example" in prompt.system_text()


def test_a_model_is_not_asked_for_more_memories_than_an_answer_may_hold() -> None:
    bounds = read_message.bounds_of(Incoming(message="word " * 500))
    assert bounds["memories"] == {"maxItems": MAX_ITEMS}
