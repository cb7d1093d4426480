"""`mneme eval`: every evaluation is found by its name, and its options are those that it declares."""

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module

import pytest
from typer.testing import CliRunner

from mneme.cli.derived import Fields, option_of
from mneme.cli.main import app
from mneme.core.errors import BadInput
from mneme.evals import EVALUATIONS

WIDTH = 80


def helped(*words: str) -> str:
    done = CliRunner().invoke(app, ["eval", *words, "--help"], env={"COLUMNS": str(WIDTH)})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", EVALUATIONS)
def test_an_evaluation_shows_every_option_in_80_columns(name: str) -> None:
    shown = helped(name)
    module = import_module(f"mneme.evals.{EVALUATIONS[name].module}")
    for field, schema in Fields(module.Options).schemas.items():
        assert f"{option_of(field, schema)} " in shown
        assert schema["description"].split()[0] in shown
    assert "--json" in shown
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_the_list_gives_each_evaluation_one_line() -> None:
    shown = helped().splitlines()
    for name, evaluation in EVALUATIONS.items():
        assert sum(f" {name} " in line and evaluation.does in line for line in shown) == 1


def test_the_list_is_grouped_by_paper() -> None:
    shown = helped()
    papers = list(dict.fromkeys(evaluation.paper for evaluation in EVALUATIONS.values()))
    places = [shown.index(f"─ {paper} ─") for paper in papers]
    assert len(papers) == 6 and places == sorted(places)


def test_the_list_imports_no_evaluation() -> None:
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from mneme.cli.main import app\n"
        "assert 'latency' in CliRunner().invoke(app, ['eval', '--help']).output\n"
        "print([each for each in sys.modules if each.startswith(('mneme.evals.', 'matplotlib', 'numpy'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("msc", "--arm", "v4"), "--arm v4: "),
        (("household", "--method", "chess"), "--method chess: "),
        (("household", "--members", "5"), "--members 5: "),
        (("latency", "--trials", "0"), "--trials 0: "),
        (("pddl", "--problems", "0"), "--problems 0: "),
        (("memory_sharing", "--jobs", "65"), "--jobs 65: "),
        (("bench", "--part", "abacus"), "--part abacus: "),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_option(words: Sequence[str], said: str) -> None:
    done = CliRunner().invoke(app, ["eval", *words])
    assert isinstance(done.exception, BadInput)
    assert str(done.exception).startswith(said)
    assert done.exception.hint == f"See `mneme eval {words[0]} --help`."


def test_an_unknown_evaluation_is_refused_with_a_near_name() -> None:
    done = CliRunner().invoke(app, ["eval", "locomoo"])
    assert done.exit_code == 2
    assert "Did you mean 'locomo'" in done.output
