"""`mneme eval model`: what came of each case, who is fit for which role, and what the doctor says of it."""

import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from rich.console import Console

from mneme.cli.doctor import Finding, examine
from mneme.client.measured import MEASURED_FILE, Fitness, keep_measured, measured_models
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.evals.prompts import evaluation
from mneme.evals.prompts.cases import Golden, all_questions, read_cases
from mneme.evals.prompts.evaluation import Options, outcome_of
from mneme.evals.prompts.tables import MEASURED_ROLES
from mneme.evals.report import Report
from mneme.nodes.chat.context import ChatContext
from mneme.nodes.discussion.context import DiscussionContext
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.pddl.context import PddlContext
from mneme.nodes.sharing.context import DesignContext, SharingContext
from mneme.rules import registry
from tests.doubles.ollama import Model, Reply
from tests.doubles.served import served

MODEL = Model("small:1b", context_length=8192)
WHO = "ollama:small:1b"
STORE = '{"rationale": "It says where.", "route": "store"}'
DISCARD = '{"rationale": "It only asks.", "route": "discard"}'


def cases(folder: Path, prompt: str, *written: dict[str, Any]) -> list[Golden]:
    """Return cases of a chat's question, named `case-0` and so on."""
    numbered = [{"name": f"case-{n}", "kind": "plain", **each} for n, each in enumerate(written)]
    path = folder / f"{prompt}.yaml"
    path.write_text(yaml.safe_dump({"prompt": prompt, "cases": numbered}))
    return read_cases(("chat", prompt), path)


def routes(folder: Path, *routes: str) -> list[Golden]:
    """Return cases of the message router that expect these routes."""
    return cases(
        folder,
        "route_message",
        *(
            {"given": {"message": f"Message {n}."}, "expect": [{"at": "route", "one_of": [each]}]}
            for n, each in enumerate(routes)
        ),
    )


def replies(folder: Path, count: int) -> list[Golden]:
    """Return cases of the chatbot that expect it to say Bonn."""
    written = {"given": {"message": "Where?"}, "expect": [{"at": "", "some": ["Bonn"]}]}
    return cases(folder, "reply", *[written] * count)


async def evaluated(
    monkeypatch: pytest.MonkeyPatch, folder: Path, found: Sequence[Golden], **options: Any
) -> Report:
    """Run the evaluation with these cases alone."""
    monkeypatch.setattr(evaluation, "golden", lambda: {found[0].key: list(found)})
    return await evaluation.run(Options(out=folder / "runs", **options))


def printed(report: Report) -> str:
    console = Console(file=io.StringIO(), width=240)
    report.print(console)
    shown = console.file
    assert isinstance(shown, io.StringIO)
    return shown.getvalue()


async def test_answers_are_told_apart_by_how_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, MODEL) as double:
        double.chat.reply(STORE, "no JSON", DISCARD, "bad", "worse", "worst", STORE)
        found = routes(tmp_path, "store", "discard", "store", "discard")
        report = await evaluated(monkeypatch, tmp_path, found, agents=[WHO])
    figures = report.summary[WHO]["questions"]["chat/route_message"]
    assert (figures["first"], figures["repaired"], figures["refused"]) == (2, 1, 1)
    assert (figures["right"]["right"], figures["cases"]) == (2, 4)
    refused, wrong = report.rows[2], report.rows[3]
    assert refused["came"] == "refused" and refused["answer"] == "worst"
    assert wrong["wrong"] == ['route one_of ["discard"]']
    assert refused["reply_tokens"] > 0


async def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, MODEL) as double:
        double.brain = lambda _: STORE
        await evaluated(monkeypatch, tmp_path, routes(tmp_path, "store"), agents=[WHO])
        asked = len(double.chats)
        found = routes(tmp_path, "store", "store", "discard")
        report = await evaluated(monkeypatch, tmp_path, found, agents=[WHO])
        assert len(double.chats) == asked + 2
        assert len(report.rows) == 3


@pytest.mark.parametrize(("right", "fit"), [(8, True), (7, False)])
async def test_the_doctor_says_what_a_model_is_fit_for(
    right: int, fit: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, MODEL) as double:
        double.chat.reply(*["In Bonn."] * right, *["No idea."] * (10 - right))
        report = await evaluated(monkeypatch, tmp_path, replies(tmp_path, 10), agents=[WHO])
        (finding,) = [each async for each in examine() if each.what == "fitness"]
    verdict = report.summary[WHO]["roles"]["chat: chatbot"]["verdict"]
    assert verdict == ("fit" if fit else f"not fit: {right} of 10 right")
    assert f"{WHO} was measured on 20" in finding.detail
    assert finding.detail.endswith("fit for chat (chatbot)")
    assert ("not fit" in finding.detail) is not fit
    assert finding.state == ("ok" if fit else "warning")


async def test_a_role_is_open_until_all_its_questions_were_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, MODEL) as double:
        double.brain = lambda _: STORE
        report = await evaluated(monkeypatch, tmp_path, routes(tmp_path, "store"), agents=[WHO])
    assert report.summary[WHO]["roles"]["chat: memory_agent (version 3)"]["verdict"] == "open: not all asked"
    assert measured_models() == {}


async def test_rules_are_told_apart_from_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, MODEL) as double:
        double.brain = lambda _: "In Bonn."
        found = replies(tmp_path, 2)
        report = await evaluated(monkeypatch, tmp_path, found, agents=[WHO, "rules", "rules"])
    shown = printed(report)
    assert "Answered by rules, which are no model: these figures stand for none" in shown
    assert "no model" in report.summary["rules"]["roles"]["chat: chatbot"]["verdict"]
    assert list(measured_models()) == [WHO]


async def test_a_question_without_a_rule_is_said_to_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module("mneme.rules.chat")
    monkeypatch.delitem(registry._RULES, ("chat", "reply"))
    report = await evaluated(monkeypatch, tmp_path, replies(tmp_path, 2), agents=["rules"])
    assert report.rows[0]["came"] == "no rule"
    assert "no rule" in printed(report)


async def test_tools_are_called_as_the_memory_agent_calls_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect = [{"at": "calls", "count": [1, 1]}, {"at": "calls[].quote", "some": ["deaf"]}]
    found = cases(tmp_path, "choose_tools", {"given": {"message": "I am deaf."}, "expect": expect})
    call = {"quote": "I am deaf."}
    with served(monkeypatch, MODEL, Model("bare", capabilities=("completion",))) as double:
        double.chat.reply(Reply(tool_calls=({"name": "insert_memory", "arguments": call},)))
        able = await outcome_of(found[0], WHO)
        unable = await outcome_of(found[0], "ollama:bare")
    assert able.is_right
    assert (unable.came, unable.wrong) == ("refused", ["bare does not support tools."])


async def test_an_unknown_question_is_refused_with_a_near_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput) as raised:
        await evaluated(
            monkeypatch, tmp_path, replies(tmp_path, 1), agents=["rules"], prompts=["route_mesage"]
        )
    assert raised.value.hint == "Did you mean route_message?"


async def test_a_workflow_selects_what_its_roles_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = replies(tmp_path, 1)
    one = await evaluated(monkeypatch, tmp_path, found, agents=["rules"], workflows=["chat"])
    other = await evaluated(monkeypatch, tmp_path, found, agents=["rules"], workflows=["learning"])
    assert list(one.summary["rules"]["questions"]) == ["chat/reply"]
    assert other.summary["rules"]["questions"] == {}


CONTEXTS: dict[str, Sequence[type[BaseModel]]] = {
    "chat": [ChatContext],
    "discussion": [DiscussionContext],
    "household": [HouseholdContext],
    "learning": [LearningContext],
    "pddl": [PddlContext],
    "sharing": [SharingContext, DesignContext],
    "task_memories": [PddlContext],
}
"""Where the fields of each workflow's roles stand."""


def test_every_question_belongs_to_a_role_that_its_context_names() -> None:
    assert {name for role in MEASURED_ROLES for name in role.questions} == {*map("/".join, all_questions())}
    for role in MEASURED_ROLES:
        assert any(role.field in context.model_fields for context in CONTEXTS[role.workflow]), role


def test_other_weights_are_another_model() -> None:
    fit = Fitness(fit=True, on="2026-11-01")
    keep_measured(WHO, "aaa", {"chat: chatbot": fit})
    keep_measured(WHO, "aaa", {"chat: memory_agent": fit})
    assert list(measured_models()[WHO].roles) == ["chat: chatbot", "chat: memory_agent"]
    keep_measured(WHO, "bbb", {"learning: leader": fit})
    assert list(measured_models()[WHO].roles) == ["learning: leader"]


async def test_a_damaged_file_does_not_stop_the_doctor() -> None:
    settings().home.mkdir(parents=True, exist_ok=True)
    (settings().home / MEASURED_FILE).write_text("{")
    found: dict[str, Finding] = {each.what: each async for each in examine()}
    assert found["measured models"].state == "warning"
    assert MEASURED_FILE in found["measured models"].detail


async def test_whether_a_worked_example_helps_is_measured_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, MODEL) as double:
        double.brain = lambda _: STORE
        found = routes(tmp_path, "store")
        await evaluated(monkeypatch, tmp_path, found, agents=[WHO])
        await evaluated(monkeypatch, tmp_path, found, agents=[WHO], without_examples=True)
        with_it, without = (str(each.body["messages"][0]["content"]) for each in double.chats)
    assert with_it.startswith(without)
    assert "Example:" in with_it and "Example:" not in without
