"""Wordings of one's own: what a model then reads, and what does not fit."""

from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.evals.prompts.cases import all_questions
from mneme.models.asking.asking import ask
from mneme.models.asking.wording import as_file, file_of, worded
from mneme.prompts.chat.chatbot import Turn, reply
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.every import Question
from tests.doubles.command_line import run_mneme
from tests.doubles.ollama import Model
from tests.doubles.quiet import quiet
from tests.doubles.served import served

USER = "Today is $today.\n$memories\n$unclear\n$message"


def write(folder: Path, text: str, name: str = "reply") -> Path:
    file = folder / "chat" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


async def test_a_model_reads_the_own_words_and_a_change_counts_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_PROMPTS", str(tmp_path))
    with served(monkeypatch, Model("small"), brain=lambda _: "Arr.") as double:
        for words in ("Answer like a pirate.", "Answer like a judge."):
            write(tmp_path, f"system: {words}\n")
            await ask(reply, Turn(message="Hello."), "ollama:small")
    read = [chat.body["messages"] for chat in double.chats]
    assert [each[0]["content"] for each in read] == ["Answer like a pirate.", "Answer like a judge."]
    assert "Hello." in read[0][-1]["content"]


@pytest.mark.parametrize("prompt", all_questions().values(), ids=lambda prompt: prompt.name)
def test_every_prompt_written_as_a_file_reads_back_as_it_was(tmp_path: Path, prompt: Question) -> None:
    file = file_of(prompt, tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(as_file(prompt))
    back: Question = worded(prompt, tmp_path)
    assert (back.system, back.user) == (prompt.system, prompt.user)
    assert back.example_texts == prompt.example_texts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("system: [", "not YAML"),
        ("sytem: x", "sytem: Extra"),
        ("system: ''", "at least 1"),
        ("user: Hello $nobody", r"there is no \$nobody"),
        ("user: $message", r"\$today is left out"),
        (f"user: {USER} costs $ 5".replace("\n", " "), "a \\$ has no field's name"),
        ("examples: 5", "examples"),
    ],
)
def test_what_does_not_fit_names_the_file_and_the_fault(tmp_path: Path, text: str, why: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(BadInput, match=why) as refused:
        worded(reply, tmp_path)
    assert str(file) in str(refused.value) and refused.value.hint


def test_an_example_is_held_to_the_type_of_the_answer(tmp_path: Path) -> None:
    write(tmp_path, "examples: [{route: perhaps}]", "read_message")
    with pytest.raises(BadInput, match="examples: rationale"):
        worded(read_message, tmp_path)


def test_the_command_line_lists_exports_and_checks(tmp_path: Path) -> None:
    folder = tmp_path / "words"
    home = quiet(tmp_path / "home", MNEME_PROMPTS=str(folder))
    assert run_mneme(("prompts", "check"), home).returncode == 1
    assert run_mneme(("prompts", "export", str(folder), "chat/reply"), home).returncode == 0
    (folder / "chat" / "reply.yaml").write_text("system: Be brief.\n")
    write(folder, "system: x", "nonsense")
    assert "1 of 2 fit" in run_mneme(("prompts", "check"), home).stdout
    assert "Be brief." in run_mneme(("prompts", "show", "chat/reply"), home).stdout
    assert '"own": true' in run_mneme(("prompts", "list", "--json"), home).stdout
    assert "There is no prompt" in run_mneme(("prompts", "show", "chat/nonsense"), home).stderr
