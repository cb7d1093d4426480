"""`mneme household`: run, go on with a killed run, replay, list; what cannot be played is refused."""

import json
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from mneme import graphs
from mneme.api import household_runs
from mneme.api.household import Household
from mneme.api.household_runs import run_lines
from mneme.cli.household.screen import Screen
from mneme.cli.main import app
from mneme.core.errors import BadInput, NotFound
from mneme.core.settings import settings
from mneme.environments.household import generate, save_episode
from mneme.environments.household.episode import parse_episode
from mneme.stores.access import known_id
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from tests.doubles.command_line import Done, Running, run_mneme
from tests.doubles.household_runs import changed, checkpoints_of, copied, lines
from tests.doubles.ollama import Model, Reply
from tests.doubles.quiet import quiet
from tests.doubles.served import served

RULES = ("--agents", "rules")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def mneme(home: Path, *words: str, status: int = 0, columns: int = 200) -> Done:
    told = run_mneme(("household", *words), quiet(home, COLUMNS=str(columns)))
    assert told.returncode == status, told.stdout + told.stderr
    assert "Traceback" not in told.stderr
    return told


def ended(told: Done) -> dict[str, Any]:
    last: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return last


@pytest.fixture(scope="module")
def tea(home: Path) -> dict[str, Any]:
    """Play one run that the tests look at."""
    play = ("run", "--task", "Prepare Tea", "--seed", "24", "--id", "tea", *RULES, "--json")
    return ended(mneme(home, *play)) | {"trace": written(home, "tea")}


def written(home: Path, name: str) -> str:
    """Write a run's lines into a file, as earlier versions and evaluations have them."""
    file = home / f"{name}-lines.jsonl"
    file.write_text(mneme(home, "replay", name, "--json").stdout)
    return str(file)


class TestRuns:
    """One run, seen from all sides."""

    def test_a_run_says_how_it_ended_and_what_it_was_worth(self, home: Path, tea: dict[str, Any]) -> None:
        assert tea["success"] and tea["bound"] <= tea["steps"] <= 250
        assert all("rules" in who for who in tea["answered_by"])
        steps = [line for line in lines(Path(tea["trace"])) if line["kind"] == "step"]
        assert [line["step"] for line in steps] == list(range(1, tea["steps"] + 1))
        begun = lines(Path(tea["trace"]))[0]["episode"]
        placed = [0, *(sum(line["progress"].values()) for line in steps)]
        wanted = sum(goal["count"] for goal in begun["goals"])
        brought = [(now - before) / wanted - 0.01 for before, now in pairwise(placed)]
        assert tea["return"] == pytest.approx(sum(0.99**n * each for n, each in enumerate(brought)))

    async def test_with_keys_it_is_its_player_s_and_nobody_else_s(
        self, home: Path, tea: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        copied(Path(tea["trace"]), tmp_path / "household" / "nobodys.jsonl")
        copied(Path(tea["trace"]), tmp_path / "household" / "old.jsonl", owner="ann")
        shutil.copy(home / "checkpoints.sqlite", tmp_path)
        changed(tmp_path, "UPDATE checkpoints SET metadata = json_set(metadata, '$.owner', 'ann')")
        monkeypatch.setenv("MNEME_HOME", str(tmp_path))
        settings.cache_clear()
        ledger: Any = None
        ann, bob = (Household(ledger, name) for name in ("ann", "bob"))
        assert {each.run for each in await bob.list()} == {"tea", "old", "nobodys"}
        monkeypatch.setenv("MNEME_AUTH", str(tmp_path / "users.json"))
        settings.cache_clear()
        assert ([each.run for each in await ann.list()], await bob.list()) == (["tea", "old"], [])
        for run in ("tea", "old"):
            assert (await ann.get(run)).played.outcome == "done"
        for who, run in ((bob, "old"), (bob, "tea"), (ann, "nobodys")):
            with pytest.raises(NotFound, match="no run"):
                await who.get(run)

    def test_it_is_listed(self, home: Path, tea: dict[str, Any]) -> None:
        (listed,) = [json.loads(line) for line in mneme(home, "list", "--json").stdout.splitlines()]
        assert (listed["run"], listed["outcome"], listed["steps"]) == ("tea", "done", tea["steps"])
        assert "Prepare Tea" in mneme(home, "list").stdout

    def test_it_is_of_a_team(self, home: Path, tea: dict[str, Any]) -> None:
        assert "Prepare Tea" in mneme(home, "list", "--team", "local").stdout
        assert "No runs yet" in mneme(home, "list", "--team", "others").stdout
        assert "After step" in mneme(home, "replay", "tea", "--team", "local").stdout
        refused = mneme(home, "replay", "tea", "--team", "others", status=1).stderr
        assert refused.startswith("mneme: --team: the run tea is not of the team others.")

    def test_it_says_why_a_proposal_was_overruled(self, home: Path, tea: dict[str, Any]) -> None:
        decisions = mneme(home, "replay", "tea").stdout.split("\n  step ")
        overruled = [each for each in decisions if "(proposed" in each]
        assert overruled and all(each.count("\n           manager: ") == 1 for each in overruled)
        assert sum("manager: " in each for each in decisions) == len(overruled)

    def test_it_shows_what_the_team_s_memories_told_until_it_is_forgotten(self, tmp_path: Path) -> None:
        fact = "The waterglass must not go into the dishwasher."
        added = run_mneme(("remember", fact, "--agents", "rules"), quiet(tmp_path))
        assert added.returncode == 0, added.stderr
        task = ("--task", "Wash Dishes", "--seed", "24", "--method", "alone")
        play = ("run", *task, "--id", "glass", *RULES)
        assert fact in mneme(tmp_path, *play).stdout
        assert f"shared   {fact}" in mneme(tmp_path, "replay", "glass").stdout
        kept = written(tmp_path, "glass")
        assert fact not in Path(kept).read_text(), "a run has names alone"
        erased = run_mneme(("memories", "forget", "--all", "--yes"), quiet(tmp_path))
        assert erased.returncode == 0, erased.stderr
        assert "what was shown is forgotten" in mneme(tmp_path, "replay", kept).stdout

    def test_it_is_told_again_up_to_a_step(self, home: Path, tea: dict[str, Any]) -> None:
        whole, part = mneme(home, "replay", "tea").stdout, mneme(home, "replay", "tea", "--step", "6").stdout
        assert len(part.splitlines()) < len(whole.splitlines())
        assert "After step 6" in part and f"After step {tea['steps']}" in whole
        assert mneme(home, "replay", "tea", "--step", "999", status=1).stderr.startswith("mneme: --step")

    def test_another_method_plays_the_same_and_stands_beside_it(
        self, tea: dict[str, Any], tmp_path: Path
    ) -> None:
        words = ("run", "--task", "Prepare Tea", "--seed", "24", "--method", "proagent", "--json", *RULES)
        other = ended(mneme(tmp_path, *words))
        assert other["name"] == "proagent-prepare-tea-3-24" and other["success"]
        told = mneme(tmp_path, "replay", tea["trace"], other["name"]).stdout
        assert f"done in {tea['steps']} steps" in told and f"done in {other['steps']} steps" in told
        drawn = tmp_path / "both.png"
        mneme(tmp_path, "replay", tea["trace"], other["name"], "--step", "9", "--png", str(drawn))
        with Image.open(drawn) as both:
            assert both.size == (3120, 832)
        refused = mneme(tmp_path, "run", "--method", "alone", "--members", "2", *RULES, status=1)
        assert "alone means one agent" in refused.stderr

    @pytest.mark.long
    def test_it_is_drawn_and_animated(self, home: Path, tea: dict[str, Any], tmp_path: Path) -> None:
        png, gif = tmp_path / "plan.png", tmp_path / "run.gif"
        mneme(home, "replay", "tea", "--step", "9", "--png", str(png), "--gif", str(gif))
        with Image.open(png) as plan, Image.open(gif) as run:
            assert plan.size > (900, 400)
            assert getattr(run, "n_frames", 1) > 20 < tea["steps"]
            assert run.size == (960, 512)
        assert gif.stat().st_size < 3_000_000
        wrong = mneme(home, "replay", "tea", "--png", str(tmp_path / "plan.jpg"), status=1)
        assert ".png" in wrong.stderr

    @pytest.mark.parametrize(("width", "height"), [(80, 24), (20, 10)])
    def test_the_live_screen_stays_within_the_window(
        self, tea: dict[str, Any], width: int, height: int
    ) -> None:
        """Rich goes up by the lines of a view to draw the next one over it."""
        begun, *played = lines(Path(tea["trace"]))
        out = StringIO()
        console = Console(file=out, force_terminal=True, width=width, height=height, color_system=None)
        with Screen(parse_episode(begun["episode"]), [], console) as screen:
            for line in played:
                if line["kind"] in {"decision", "step"}:
                    screen.show(line)
        views = re.split(r"\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*", out.getvalue())
        assert len(views) > len(played) / 2
        for view in views:
            shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", view).strip("\n").splitlines()
            assert len(shown) < height and max(map(cell_len, shown), default=0) <= width
            assert not shown or "Prepare Tea"[: width - 4] in shown[0]
        assert "Alice" in views[-1], "who acts is shown in the smallest window"

    def test_what_never_began_is_a_row_among_others(self, home: Path, tea: dict[str, Any]) -> None:
        broken = {"empty": "", "half": '{"kind": "epi', "line": '{"kind": "epi\n', "foreign": "7\n"}
        traces = [home / "household" / f"{name}.jsonl" for name in broken]
        for trace, text in zip(traces, broken.values(), strict=True):
            trace.write_text(text)
        rows = [json.loads(line) for line in mneme(home, "list", "--json").stdout.splitlines()]
        shown = mneme(home, "list", columns=40).stdout
        for trace in traces:
            trace.unlink()
        outcomes = {row["run"]: (row["outcome"], row["at_least"]) for row in rows}
        told = dict.fromkeys(broken, ("never began", None)) | {"tea": ("done", tea["bound"])}
        assert outcomes == told | dict.fromkeys(("line", "foreign"), ("unreadable", None))
        assert {*broken, "tea", "manager:", "outcome"} <= {*shown.split()}, "no word is broken"

    def test_only_what_began_a_run_goes_on_with_it(self, here: Path, tea: dict[str, Any]) -> None:
        begun = lines(Path(tea["trace"]))[:9]
        trace = here / "household" / "kk.jsonl"
        trace.parent.mkdir(parents=True)
        trace.write_text("".join(json.dumps(line) + "\n" for line in begun))
        play = ("--id", "kk", "--task", "Prepare Tea", "--members", "4", "--seed", "24")
        told = refused(*play, "--no-allocation", "--manager", "auto", *RULES)
        assert told == "--manager, --allocation, --members: the run 'kk' was begun with another value."
        assert trace.read_text().count("\n") == 9

    def test_another_command_begins_another_run(self, home: Path, tea: dict[str, Any]) -> None:
        begun = lines(Path(tea["trace"]))[:9]
        trace = home / "household" / "prepare-tea-3-24.jsonl"
        trace.write_text("".join(json.dumps(line) + "\n" for line in begun))
        told = mneme(home, "run", "--task", "Prepare Tea", "--seed", "24", "--no-summary", *RULES)
        assert told.stdout.startswith("prepare-tea-3-24-2 begins")
        assert "0 repaired answers, 0 fallbacks." in told.stdout
        cut_short = mneme(home, "replay", "prepare-tea-3-24")
        assert "was interrupted" in cut_short.stderr
        trace.unlink()

    def test_a_model_that_does_not_answer_leaves_no_run(self, home: Path, tea: dict[str, Any]) -> None:
        before = mneme(home, "list").stdout
        told = mneme(home, "run", "--seed", "24", "--id", "mute", "--agents", "ollama:nope", status=1)
        assert "Ollama" in told.stderr
        assert mneme(home, "list").stdout == before

    def test_a_run_that_does_not_exist_is_named(self, home: Path, tea: dict[str, Any]) -> None:
        assert "'supper'" in mneme(home, "replay", "supper", status=1).stderr
        for words in (("",), ("tea", "")):
            assert "run: '' is not a valid name." in mneme(home, "replay", *words, status=1).stderr

    def test_a_run_that_another_process_plays_is_refused(self, home: Path, here: Path) -> None:
        play = ("run", "--task", "Wash Dishes", "--members", "2", "--seed", "1", *RULES)
        with household_runs.Run("wash-dishes-2-1").played_alone():
            told = mneme(here, *play, status=1)
        assert "Another process plays the run wash-dishes-2-1." in told.stderr and "--id" in told.stderr
        assert mneme(here, *play).stdout.startswith("wash-dishes-2-1 begins")

    def test_watching_shows_rooms_hands_and_the_synopsis(self, home: Path) -> None:
        shown = mneme(home, "run", "--task", "Wash Dishes", "--seed", "2", "--members=2", *RULES, "--watch")
        for words in ("kitchen", "Alice", "proposes", "is to do", "synopsis", "of"):
            assert words in shown.stdout
        assert "\ndone in" in shown.stdout


class TestKilled:
    """A run that is killed goes on under the same name, to the same end."""

    def test_a_killed_run_goes_on_to_the_same_end(
        self, home: Path, tea: dict[str, Any], tmp_path: Path
    ) -> None:
        play = ("run", "--task", "Prepare Tea", "--seed", "24", "--id", "killed", *RULES, "--json")
        with Running(("household", *play), quiet(home), piped=True) as command:
            for _ in range(8):
                assert command.output.readline()
        assert [*(home / "household").iterdir()] == [home / "household" / "killed.lock"]
        assert {**ended(mneme(home, *play)), "name": "tea", "trace": tea["trace"]} == tea
        assert lines(Path(written(home, "killed")))[1:] == lines(Path(tea["trace"]))[1:]
        assert "is over" in mneme(home, *play, status=1).stderr

    async def test_one_that_has_no_next_step_is_begun_anew(self, tea: dict[str, Any], home: Path) -> None:
        """Earlier versions left one that was stopped within a step so."""
        name = "household/left/1"
        async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
            (kept,) = [each for each in await saver.threads() if "household/tea/" in str(each.metadata)]
            await saver.acopy_thread(kept.id, known_id(name))
            metadata = {"thread_name": name, "household_run": kept.metadata["household_run"]}
            config: Any = {"configurable": {"thread_id": known_id(name)}, "metadata": metadata}
            graph = graphs.load("mita").builder.compile(checkpointer=saver)
            await graph.aupdate_state(config, {"over": False}, as_node="finish")
            assert (await graph.aget_state(config)).tasks == ()
        play = ("run", "--task", "Prepare Tea", "--seed", "24", "--id", "left", *RULES, "--json")
        assert {**ended(mneme(home, *play)), "name": "tea", "trace": tea["trace"]} == tea

    def test_what_an_earlier_version_wrote_into_a_file_is_replayed_and_gone_on_with(
        self, home: Path, tea: dict[str, Any]
    ) -> None:
        begun, *others = Path(tea["trace"]).read_text().splitlines()
        trace = home / "household" / "early.jsonl"
        unknown = json.dumps(json.loads(begun) | {"thread": "household/early/nowhere"})
        trace.write_text("\n".join([unknown, *others[:6], others[6][:20]]))
        cut_short = mneme(home, "replay", "early")
        assert "was interrupted" in cut_short.stderr and "After step" in cut_short.stdout
        play = ("run", "--task", "Prepare Tea", "--seed", "24", "--id", "early", *RULES, "--json")
        assert {**ended(mneme(home, *play)), "name": "tea", "trace": tea["trace"]} == tea
        assert lines(Path(written(home, "early")))[1:] == lines(Path(tea["trace"]))[1:]

    async def test_what_it_went_on_with_is_added_to_what_an_earlier_version_wrote(
        self, tea: dict[str, Any], home: Path, here: Path
    ) -> None:
        metadata, values = await checkpoints_of(home, "tea")
        whole = lines(Path(tea["trace"]))
        (here / "household").mkdir(parents=True)
        shutil.copy(tea["trace"], here / "household" / "tea.jsonl")
        for went_on in range(1, len(values["lines"])):
            assert [*run_lines(metadata, values | {"lines": values["lines"][went_on:]})] == whole


class TestDamage:
    """What a run is replayed from is in the checkpoints: what becomes of it is told."""

    def test_no_file_of_a_run_is_needed(self, home: Path, tea: dict[str, Any], tmp_path: Path) -> None:
        shutil.copytree(home, tmp_path, dirs_exist_ok=True)
        shutil.rmtree(tmp_path / "household")
        assert mneme(tmp_path, "replay", "tea").stdout == mneme(home, "replay", "tea").stdout

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM items WHERE channel = 'lines' AND number = 3",
            "UPDATE items SET value = CAST(substr(value, 1, length(value) - 1) || x'42' AS BLOB)",
        ],
    )
    def test_what_is_gone_or_changed_is_told(
        self, home: Path, tea: dict[str, Any], tmp_path: Path, damage: str
    ) -> None:
        shutil.copytree(home, tmp_path, dirs_exist_ok=True)
        changed(tmp_path, damage)
        rows = [json.loads(line) for line in mneme(tmp_path, "list", "--json").stdout.splitlines()]
        assert {row["run"]: row["outcome"] for row in rows}["tea"] == "unreadable"
        told = run_mneme(("verify",), quiet(tmp_path))
        assert told.returncode == 1 and "whole" not in told.stdout
        play = ("run", "--task", "Prepare Tea", "--seed", "24", "--id", "tea", *RULES)
        for words in (("replay", "tea"), play):
            refused = mneme(tmp_path, *words, status=1).stderr
            assert "is damaged" in refused and "mneme threads delete household/tea/" in refused


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in this process, in an empty home."""
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield tmp_path / "home"
    settings.cache_clear()


def refused(*words: str) -> str:
    """Run what is to be refused; return what the user is told."""
    outcome = CliRunner().invoke(app, ["household", "run", *words])
    assert isinstance(outcome.exception, BadInput), outcome.output
    return str(outcome.exception)


class TestBadInput:
    """What cannot be played is refused in a line that names the field."""

    @pytest.mark.parametrize(
        ("words", "field"),
        [
            (("--members", "0"), "0 agents"),
            (("--members", "50"), "50 agents"),
            (("--task", "Fly a kite"), "--task"),
            (("--id", "../up"), "--id"),
            (("--id", ""), "--id"),
            (("--episode", "nowhere.json"), "nowhere.json"),
            (("--watch", "--json"), "--watch"),
            (("--agents", "nobody"), "nobody"),
            (("--seed", "9" * 23), "less than or equal to 9007199254740991"),
        ],
    )
    def test_options_are_refused(self, here: Path, words: tuple[str, ...], field: str) -> None:
        assert field in refused(*RULES, *words)
        assert not (here / "household").exists(), "what cannot be played leaves no run behind"

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            (lambda given: given["starts"][0].update(room=999), "starts.0.room"),
            (lambda given: given["goals"][0].update(target=999), "target"),
            (lambda given: given["goals"][0].update(relation="under"), "relation"),
            (lambda given: given.update(doors=[]), "doors"),
        ],
    )
    def test_episodes_are_refused(self, here: Path, tmp_path: Path, change: Any, field: str) -> None:
        file = tmp_path / "episode.json"
        save_episode(generate(3), file)
        given = json.loads(file.read_text())
        change(given)
        file.write_text(json.dumps(given))
        assert field in refused("--episode", str(file), *RULES)

    def test_a_sound_episode_is_played_from_its_file(self, home: Path, tmp_path: Path) -> None:
        save_episode(generate(4, "Wash Dishes"), file := tmp_path / "mine.json")
        assert "mine-2-0" in mneme(home, "run", "--episode", str(file), "--members", "2", *RULES).stdout


def test_a_manager_that_never_answers_does_not_look_like_mita(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "no usable allocation in "
    played = ("--task", "Set up Table", "--members", "2", "--seed", "4", "--id", "mute", "--no-summary")
    with served(monkeypatch, Model("large"), brain=lambda _: Reply("I would love to help!")):
        settings.cache_clear()
        told = CliRunner().invoke(app, ["household", "run", *played, *RULES, "--manager", "ollama:large"])
    assert told.exit_code == 0, told.output
    assert "so this is not MiTa's play" in told.output
    shown = CliRunner().invoke(app, ["household", "replay", "mute", "--json"]).stdout
    written = [json.loads(line) for line in shown.splitlines()]
    rounds = [line for line in written if line.get("step") == "allocate"]
    assert all("fallback" in line for line in rounds)
    assert written[-1]["counters"]["unallocated"] == len(rounds) > 1
    assert f"{said}{len(rounds)} of {len(rounds)} rounds" in told.output
    replayed = CliRunner().invoke(app, ["household", "replay", "mute"]).output
    assert replayed.count("no usable allocation") == len(rounds)
    assert said in CliRunner().invoke(app, ["household", "list", "--json"]).output
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=50)
    with Screen(parse_episode(written[0]["episode"]), [], console) as screen:
        screen.show(rounds[0])
    assert "no usable allocation (1 so far)" in out.getvalue()


def test_a_method_of_another_package_plays_by_entry_point(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "own-household-method.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "greedy_method.py").write_text("".join(code))
    monkeypatch.syspath_prepend(tmp_path)
    points = EntryPoints([EntryPoint("greedy", "greedy_method", graphs.METHOD_PLUGINS)])
    for module in (graphs, household_runs):
        monkeypatch.setattr(module, "entry_points", lambda group: points.select(group=group))
    play = ("household", "run", "--method", "greedy", "--task", "Prepare Tea", "--seed", "24", *RULES)
    told = CliRunner().invoke(app, [*play, "--json"])
    assert told.exit_code == 0, told.output
    ended = json.loads(told.stdout.splitlines()[-1])
    assert ended["success"] and ended["name"] == "greedy-prepare-tea-3-24"
    shown = CliRunner().invoke(app, ["household", "replay", ended["name"], "--json"]).stdout
    played = [json.loads(line) for line in shown.splitlines()]
    assert {line["step"] for line in played if line["kind"] == "decision"} == {"plan"}
    assert "There are: mita, coela, proagent, mhp, alone, greedy" in str(
        CliRunner().invoke(app, ["household", "run", "--method", "farthest", *RULES]).exception.hint  # type: ignore[union-attr]
    )
