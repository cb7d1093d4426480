"""The agents that share memories: their files, rubrics, the forms of what they write, their seed sets."""

import json
from collections import Counter
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.library.agents.agent import AGENTS, DOMAINS, agents_of, load_agent
from mneme.library.agents.forms import VERSE_FORMS, check_form
from mneme.library.agents.rubric import RUBRICS, load_rubric, read_rubric
from tests.doubles.sharing_puzzles import SOLVERS

SEEDS = Path(__file__).parents[2] / "library" / "pairs"
LEAST = 20


def seeds(agent: str) -> list[dict[str, str]]:
    lines = (SEEDS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def checked(form: str, answer: str) -> list[str]:
    return [str(fault) for fault in check_form(form, answer)]


# --- agents and rubrics ---------------------------------------------------------------------------------


def test_nine_agents_stand_in_three_domains() -> None:
    by_domain = {domain: [agent.name for agent in agents_of(domain)] for domain in DOMAINS}
    assert [len(names) for names in by_domain.values()] == [3, 3, 3]
    assert [name for names in by_domain.values() for name in names] == list(AGENTS)
    assert {load_agent(name).language for name in AGENTS} == {"en", "zh"}
    assert [load_agent(name).form for name in AGENTS] == [*VERSE_FORMS, *[None] * 6]


def test_an_agent_of_the_users_own_is_one_yaml_file(tmp_path: Path) -> None:
    file = tmp_path / "haiku.yaml"
    file.write_text(
        "name: haiku\ndomain: literary_creation\ntitle: Haiku\ndoes: Write a haiku.\n"
        "questions: A season and a moment.\nlanguage: en\n"
    )
    assert load_agent(file).domain == "literary_creation"
    assert load_agent(str(file)).form is None
    file.write_text(f"{file.read_text()}form: travel\n")
    assert load_agent(file).form is None, "code checked this form once; a rubric judges it now"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name: [", "not YAML"),
        ("name: haiku", "domain"),
        ("- a list", "valid dictionary"),
        ("name: Haiku!\ndomain: d\ntitle: t\ndoes: d\nquestions: q\nlanguage: en", "name"),
        ("name: h\ndomain: d\ntitle: t\ndoes: d\nquestions: q\nlanguage: en\nmodel: x", "model"),
    ],
)
def test_a_broken_agent_file_is_named_with_its_fault(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=named) as raised:
        load_agent(file)
    assert "broken.yaml" in str(raised.value)
    assert raised.value.hint


def test_what_does_not_exist_is_refused_with_what_does() -> None:
    for load, known in (
        (load_agent, "limerick"),
        (load_rubric, "single_pool"),
        (agents_of, "plan_generation"),
    ):
        with pytest.raises(BadInput, match="ballad") as raised:
            load("ballad")
        assert known in raised.value.hint
    with pytest.raises(BadInput, match="cannot be read"):
        load_agent("nowhere/ballad.yaml")


@pytest.mark.parametrize(("name", "criteria"), list(zip(RUBRICS, (11, 9, 7, 5), strict=True)))
def test_each_rubric_has_the_papers_criteria_and_a_hundred_points(name: str, criteria: int) -> None:
    rubric = load_rubric(name)
    assert len(rubric.criteria) == criteria
    assert all(each.name in rubric.as_text() for each in rubric.criteria)


@pytest.mark.parametrize(
    ("points", "fault"), [((60, 30), "sum to 90"), ((60, 50), "sum to 110"), ((101, -1), "criteria.0.points")]
)
def test_a_rubric_that_does_not_sum_to_a_hundred_is_refused(points: tuple[int, int], fault: str) -> None:
    criteria = [{"name": f"c{index}", "points": p, "looks_at": "x"} for index, p in enumerate(points)]
    with pytest.raises(BadInput, match=fault):
        read_rubric(json.dumps({"name": "mine", "title": "Mine", "criteria": criteria}))


def test_a_rubric_names_each_criterion_once() -> None:
    twice = [{"name": name, "points": 50, "looks_at": "x"} for name in ("Wit", "wit")]
    with pytest.raises(BadInput, match="two criteria"):
        read_rubric(json.dumps({"name": "mine", "title": "Mine", "criteria": twice}))


# --- the seed sets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", VERSE_FORMS)
def test_every_seed_has_the_form_of_its_agent(agent: str) -> None:
    form = load_agent(agent).form
    assert form is not None
    assert {seed["id"]: faults for seed in seeds(agent) if (faults := checked(form, seed["answer"]))} == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_seed_set_is_large_enough_and_repeats_nothing(agent: str) -> None:
    pairs = seeds(agent)
    assert len(pairs) >= LEAST
    assert {frozenset(pair) for pair in pairs} == {frozenset({"id", "question", "answer"})}
    assert len({pair["id"] for pair in pairs}) == len({pair["answer"] for pair in pairs}) == len(pairs)
    openings = Counter(_opening(pair["question"]) for pair in pairs)
    assert max(openings.values()) == 1, openings.most_common(3)


def _opening(question: str) -> str:
    """Give a question's first words, or in Chinese its first characters: a template would repeat them."""
    return question[:4] if question[0] > "\u3000" else " ".join(question.split()[:4])


def test_every_puzzle_has_one_solution_and_it_is_the_one_given() -> None:
    given = {pair["id"]: pair["answer"].rpartition("Answer: ")[2] for pair in seeds("puzzle")}
    assert {puzzle: solve() for puzzle, solve in SOLVERS.items()} == {
        each: {end} for each, end in given.items()
    }


# --- what is not of the form ----------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["limerick", "sonnet"])
def test_spoiled_verse_is_found_out(agent: str) -> None:
    for seed in seeds(agent):
        lines = [line for line in seed["answer"].splitlines() if line]
        rhymeless = [*lines[:-1], lines[-1].rpartition(" ")[0] + " month"]
        limping = [lines[0] + " again and again", *lines[1:]]
        swapped = [lines[0], *lines[3:1:-1], lines[1], *lines[4:]]
        for spoiled in (lines[:-1], rhymeless, limping, swapped if agent == "limerick" else lines * 2):
            assert checked(agent, "\n".join(spoiled)), spoiled


def test_a_spoiled_wuyanlvshi_is_found_out() -> None:
    for seed in seeds("wuyanlvshi"):
        one, two, *rest = seed["answer"].splitlines()
        turned = "。".join(reversed(two.rstrip("。").split("，"))) + "。"
        off_rhyme = two[:-2] + "雪。"
        six = one.replace("，", "山，")
        for spoiled in ((one, turned, *rest), (one, off_rhyme, *rest), (six, two, *rest), (two, *rest)):
            assert checked("wuyanlvshi", "\n".join(spoiled)), spoiled


def test_lears_own_limerick_rhymes_a_word_with_itself() -> None:
    poem = (
        "There was an Old Man with a beard,\nWho said, “It is just as I feared!\nTwo Owls and a Hen,\n"
        "Four Larks and a Wren,\nHave all built their nests in my beard!”"
    )
    assert checked("limerick", poem) == ['line 5: "beard" rhymes with itself']


def test_a_fault_of_verse_is_told_with_its_line() -> None:
    first = seeds("limerick")[0]["answer"].splitlines()
    prose = "\n".join([*first[:2], "He went to the shop on a Tuesday", *first[3:]])
    assert [fault.where for fault in check_form("limerick", prose)] == ["line 3"]
    unheard = "\n".join(["A brxlk with dough could not rest", *first[1:]])
    assert not checked("limerick", unheard), "a gap in the dictionary is no fault of the poem"


def test_a_tang_poem_holds_by_the_old_tones_and_a_quatrain_is_no_lushi() -> None:
    wang_wei = (
        "空山新雨后，天气晚来秋。明月松间照，清泉石上流。竹喧归浣女，莲动下渔舟。随意春芳歇，王孙自可留。"
    )
    assert checked("wuyanlvshi", wang_wei) == []
    quatrain = checked("wuyanlvshi", "床前明月光，疑是地上霜。举头望明月，低头思故乡。")
    assert quatrain == ["the whole: 4 lines instead of 8"]


def test_a_parallel_couplet_may_not_answer_with_the_same_character() -> None:
    poem = seeds("wuyanlvshi")[0]["answer"].replace("雁断五更天", "雁断五星天")
    assert "星 answers itself" in "\n".join(checked("wuyanlvshi", poem))


def test_words_with_many_readings_do_not_hold_up_a_check() -> None:
    light = "to the and a for of with from that our or your"
    assert checked("sonnet", "\n".join([light] * 14))


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(BadInput, match="no form"):
        check_form("ballad", "text")
    for form in VERSE_FORMS:
        with pytest.raises(BadInput, match="50000 characters"):
            check_form(form, "a" * 50_000)
        assert check_form(form, "")
