"""`mneme pddl …` as a user meets it: problems shown and played, killed and gone on with."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.cli import pddl
from mneme.cli.show import printing
from mneme.core.errors import BadInput
from tests.doubles.command_line import Run, Running, run_mneme
from tests.doubles.langgraph_server import Server
from tests.doubles.ollama import OllamaDouble
from tests.doubles.quiet import quiet

PLAYED = ("pddl", "run", "gripper/seed3-size4", "--agents", "rules", "--json")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_problems_are_listed_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with printing(as_json=True):
        await pddl.list_(None, 6, 2)
        listed = lines(capsys.readouterr().out)
        assert len(listed) == 6
        await pddl.show(listed[0]["name"], None, 1)
        (shown,) = lines(capsys.readouterr().out)
        assert shown["name"] == listed[0]["name"]
        for part in ("domain", "problem"):
            (tmp_path / f"{part}.pddl").write_text(shown[f"{part}_pddl"])
        await pddl.show(str(tmp_path / "problem.pddl"), None, 1)
        assert lines(capsys.readouterr().out)[0]["manual"] == shown["manual"]
        await pddl.list_(tmp_path, 6, 1)
        assert [each["name"] for each in lines(capsys.readouterr().out)] == ["gripper/problem"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("chess", "There is no problem 'chess'"),
        ("gripper/seed1-size0", "problem of size 0"),
        ("absent.pddl", "absent.pddl has no domain"),
    ],
)
def test_a_problem_that_is_not_there_is_said(name: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        pddl.find([name], None, 1)


def test_what_cannot_be_played_is_said_in_one_line(mneme: Run) -> None:
    done = mneme("pddl", "run", "gripper", "--memory", "elephant")
    assert done.returncode == 1
    assert "--memory elephant: " in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "--seed" in mneme("pddl", "list", "--seed", str(2**53)).stderr


@pytest.mark.parametrize(
    ("option", "value", "least"), [("--context-tokens", "100", "512"), ("--memory-tokens", "5", "100")]
)
def test_a_bound_that_is_not_kept_is_said_in_one_line_and_stands_in_the_help(
    mneme: Run, option: str, value: str, least: str
) -> None:
    for command in (("pddl", "run", "gripper"), ("eval", "pddl")):
        done = mneme(*command, "--agents", "rules", option, value)
        assert done.returncode == 1
        assert f"{option} {value}: Input should be greater than or equal to {least}" in done.stderr
        assert len(done.stderr.splitlines()) == 2
        assert f"{least} or more" in " ".join(mneme(*command[:2], "--help").stdout.replace("│", " ").split())


def test_an_unsolved_problem_is_a_result_and_no_error(mneme: Run) -> None:
    done = mneme("pddl", "run", "gripper/seed3-size12", "--agents", "rules", "--memory", "memory_bank")
    assert done.returncode == 0, done.stderr
    assert "not solved in 30 steps" in done.stdout and "0 of 1 problems solved" in done.stdout


def test_a_run_ends_with_how_many_answers_were_repaired_or_never_came(tmp_path: Path) -> None:
    with OllamaDouble(brain=lambda body: "no action") as double:
        double.chat.reply("no JSON", '{"action": "look around"}')
        words = ("pddl", "run", "gripper/seed3-size4", "--memory", "none", "--agents", "ollama:llama3.1:8b")
        done = run_mneme(words, quiet(tmp_path / "home", MNEME_OLLAMA_URL=double.url))
    assert done.returncode == 0, done.stderr
    assert "not solved in 30 steps" in done.stdout
    assert (
        "questions to agents, 1 repaired, " in done.stdout and " 0 without a usable answer" not in done.stdout
    )


def test_a_problem_is_played_step_by_step_and_its_end_is_told_again(mneme: Run) -> None:
    first = mneme(*PLAYED, "--memory", "none", "--id", "one")
    *steps, end = lines(first.stdout)
    assert [each["step"] for each in steps] == list(range(1, end["steps"] + 1))
    assert steps[-1]["progress"] == end["progress"]
    assert end["answered_by"] == "rules"
    assert first.returncode == 0, first.stderr
    assert lines(mneme(*PLAYED, "--memory", "none", "--id", "one").stdout) == [end]
    told = mneme(*PLAYED[:-1], "--memory", "none", "--id", "one").stdout
    assert "grounding accuracy" in told and "1 of 1 problems solved" in told


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, mneme: Run) -> None:
    """The reader takes five steps and then nothing: the run waits at a full pipe until it is killed."""
    longer = [*PLAYED[:2], "gripper/seed3-size12", *PLAYED[3:]]
    whole = lines(mneme(*longer, "--id", "whole", "--team", "other").stdout)
    with Running((*longer, "--id", "killed"), quiet(tmp_path / "home"), piped=True) as command:
        before = [json.loads(command.output.readline()) for _ in range(5)]
    after = lines(mneme(*longer, "--id", "killed").stdout)
    assert before == whole[:5]
    assert 1 < after[0]["step"] < 30
    assert after[:-1] == whole[after[0]["step"] - 1 : -1]
    assert after[-1]["progress"] == whole[-1]["progress"]


@pytest.mark.xdist_group("server")
def test_a_running_server_plays_for_the_command(server: Server) -> None:
    words = ["pddl", "run", "blockworld/seed1-size3", "--agents", "rules", "--json", "--id", "served"]
    played = server.mneme(*words)
    *steps, end = lines(played.stdout)
    assert [each["step"] for each in steps] == list(range(1, end["steps"] + 1)), played.stderr
    assert lines(server.mneme(*words).stdout) == [end]
