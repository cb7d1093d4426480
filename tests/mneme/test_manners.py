"""What a newcomer meets on the command line: version, completion, mistakes and what is said of them."""

import asyncio
import json
import os
import pty
import socket
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest

from mneme.core.errors import DISTRIBUTION, ModelUnavailable
from mneme.models.ollama import catalogue
from mneme.prompts.chat.chatbot import reply
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from tests.doubles.command_line import Done, Run, Running, chat, failed, run_mneme
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.ollama import OllamaDouble, Reply, by_rules
from tests.doubles.quiet import quiet
from tests.doubles.terminal import at_a_terminal
from tests.doubles.waiting import eventually


def test_the_version_is_that_of_the_distribution(mneme: Run) -> None:
    assert mneme("--version").stdout == f"mneme {version(DISTRIBUTION)}\n"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("mneme mem", ["memories"]),
        ("mneme memories h", ["history"]),
        ("mneme memories search --s", ["--search"]),
        ("mneme memories search --search b", ["blend", "bm25"]),
        ("mneme discuss TASK.md --max", ["--max-turns"]),
        ("mneme eval msc --chat", ["--chatbot"]),
    ],
)
def test_the_shell_completes_commands_options_and_choices(mneme: Run, line: str, offered: list[str]) -> None:
    """The protocol by which the script of `--install-completion` asks for what comes next."""
    asked = {"_MNEME_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = mneme(**asked)
    assert (done.returncode, done.stdout.split()) == (0, offered), done.stderr


def test_completion_can_be_installed(mneme: Run) -> None:
    assert "--install-completion" in mneme("--help").stdout
    assert "_MNEME_COMPLETE=complete_bash" in mneme("--show-completion", "bash").stdout


TASK = "Design a small pipeline for weather stations."
COMMANDS = [
    ("chat", "--agents"),
    ("chat", "--chatbot"),
    ("chat", "--memory-agent"),
    ("remember", "TALK", "--agents"),
    ("learn", TASK, "--agents"),
    ("learn", TASK, "--monitor"),
    ("disputes", "resolve", "d", "--agents"),
    ("household", "run", "--agents"),
    ("household", "run", "--manager"),
    ("pddl", "run", "gripper", "--agents"),
    ("pddl", "run", "gripper", "--memory-model"),
    ("discuss", TASK, "--agents"),
    ("discuss", "new-team", "mine", "--task", TASK, "--agents"),
    ("share", "ask", "Write a limerick.", "--agent", "limerick", "--agents"),
    ("share", "ask", "Write a limerick.", "--agent", "limerick", "--grader"),
    ("share", "grow", "--domain", "literary_creation", "--scorer"),
    ("share", "retriever", "train", "--pool", "literary_creation", "--agents"),
    ("share", "rubric", "design", "literary_creation", "--agents"),
    ("share", "rubric", "review", "literary_creation", "--wishes", "wit", "--agents"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_who_cannot_answer_is_named_before_any_work(
    mneme: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    talk = tmp_path / "talk.txt"
    talk.write_text("user: I have a cat.\n")
    done = mneme(*(str(talk) if each == "TALK" else each for each in words), "llama3.1:8b", stdin="hello\n")
    failed(done, "No provider is called 'llama3.1'", "For a model of Ollama: ollama:llama3.1:8b")
    assert done.stdout == ""
    assert "scripted" not in done.stderr
    assert not (tmp_path / "home" / "ledger").exists(), "nothing was opened"


def test_a_model_that_is_not_there_is_named_at_the_start(mneme: Run) -> None:
    failed(mneme("chat", "--chatbot", "ollama:absent", stdin="hello\n"), "No Ollama answers", "ollama serve")
    failed(mneme("chat", "--chatbot", "scripted:x"), "No provider is called 'scripted'")
    failed(mneme("chat", "--chatbot", "llama3"), "'llama3' names no model", "ollama:llama3.")


@pytest.mark.parametrize("address", ["notaurl", "localhost:11434", "ftp://x", "http://", "http://x:port"])
def test_a_setting_that_is_no_address_is_said_to_be_none(mneme: Run, address: str) -> None:
    done = mneme("chat", stdin="hello\n", MNEME_OLLAMA_URL=address)
    failed(done, f"MNEME_OLLAMA_URL={address}: this is not an address", "Default: http://127.0.0.1:11434")
    assert "ollama serve" not in done.stderr
    ill = mneme("doctor", MNEME_OLLAMA_URL=address)
    assert ill.returncode == 1 and "FAILED" in ill.stdout and "MNEME_OLLAMA_URL" in ill.stdout


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "is not Ollama", "Check MNEME_OLLAMA_URL"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "is not Ollama", "Check MNEME_OLLAMA_URL"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "is not Ollama", "Check MNEME_OLLAMA_URL"),
        (
            b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}',
            "is not Ollama",
            "Check MNEME_OLLAMA_URL",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not Ollama", "Check MNEME_OLLAMA_URL"),
        (b"", "no answer in time", "the network"),
        (None, "No Ollama answers", "ollama serve"),
    ],
    ids=["404", "text", "list", "other JSON", "no HTTP", "silence", "refused"],
)
async def test_a_hint_fits_what_answers(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None, message: str, hint: str
) -> None:
    monkeypatch.setattr(catalogue, "GLANCE_TIMEOUT", httpx.Timeout(0.3))
    opened = list[asyncio.StreamWriter]()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        if answer:
            writer.write(answer)
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    if answer is None:
        server.close()
        await server.wait_closed()
    with pytest.raises(ModelUnavailable, match=message) as failure:
        await catalogue.digests(url)
    assert hint in failure.value.hint
    server.close()
    for writer in opened:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_an_unknown_machine_is_called_unknown() -> None:
    with pytest.raises(ModelUnavailable, match=r"No machine is called ollama\.invalid"):
        await catalogue.digests("http://ollama.invalid:11434")


def test_what_goes_into_a_pipe_does_not_depend_on_the_window(mneme: Run, tmp_path: Path) -> None:
    """The window is seen through stdin and stderr even where stdout is a pipe."""
    master, terminal = pty.openpty()
    environment = quiet(tmp_path / "home")
    words = [sys.executable, "-m", "mneme", "pddl", "memories"]
    printed = subprocess.run(
        words, env=environment, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE, text=True, check=True
    )
    os.close(terminal)
    os.close(master)
    assert printed.stdout == mneme("pddl", "memories").stdout
    assert max(map(len, printed.stdout.splitlines())) <= 80


def test_a_terminal_of_which_columns_says_nothing_is_printed_on(tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    environment = quiet(tmp_path / "home") | {"COLUMNS": "0"}
    words = [sys.executable, "-m", "mneme", "memories", "list"]
    subprocess.run(words, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, check=True)
    os.close(terminal)
    assert "Nothing is kept of local" in os.read(master, 4096).decode()
    os.close(master)


def test_the_chat_asks_before_it_erases(mneme: Run, tmp_path: Path) -> None:
    key = json.loads(mneme("add", "I have a cat.", "--json").stdout)["key"]
    with at_a_terminal("chat", **quiet(tmp_path / "home")) as (process, seen, typed):
        seen("you: ")
        typed(f"/forget {key}\n")
        seen("Erase it?")
        typed("n\n/quit\n")
        assert process.wait(30) == 0
    assert "I have a cat." in mneme("memories", "list").stdout
    failed(mneme("chat", stdin=f"/forget {key}\n"), "no terminal to ask", "Add --yes")
    assert "forgotten: 1 fact" in mneme("chat", stdin=f"/forget  {key}  --yes\n").stdout


def test_a_port_that_is_taken_is_named(mneme: Run) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        failed(mneme("console", "--no-browser", "--port", str(port)), f"Port {port} cannot be used", "--port")


@pytest.mark.long
@pytest.mark.xdist_group("server")
def test_an_unknown_key_beside_a_server_is_an_error_and_ends_no_chat(server: Server) -> None:
    words = "/history zzzz\n/forget zzzz --yes\nI live in Ulm.\n/quit\n"
    done: Done = server.mneme("chat", "--user", "kay", stdin=words)
    assert done.stderr.count("kay has no memory zzzz.") == 2
    assert "Ulm" in done.stdout and "Unexpected" not in done.stderr
    for command in (["show"], ["history"], ["rollback"], ["forget", "--yes"]):
        more = ["1"] if command == ["rollback"] else []
        told = server.mneme("memories", command[0], "zzzz", *more, *command[1:], "--user", "kay")
        failed(told, "kay has no memory zzzz", "mneme memories list")


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_a_server_that_dies_in_a_chat_loses_no_turn(tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = ("chat", "--chatbot", "ollama:llama3.1:8b", "--memory-agent", "rules")
    with (
        OllamaDouble(brain=lambda _: Reply(seconds=3600)) as double,
        serving(home, MNEME_OLLAMA_URL=double.url) as server,
        Running(words, server.environment, "I live in Ulm.\nWhere do I live?\n") as chatting,
    ):
        await eventually(lambda: something(double.chats))
        double.brain = by_rules(reply)
        server.kill()
        done = await asyncio.to_thread(chatting.end)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("The server has ended. Your message is kept") == 1
    assert "Unexpected" not in done.stderr
    listed = run_mneme(("memories", "list", "--json"), quiet(home), "").stdout
    assert listed.count("Ulm") >= 1
    assert len([each for each in double.chats if "Where do I live?" in str(each.body["messages"][-1])]) == 1


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_what_a_server_that_died_had_not_remembered_is_remembered_by_the_chat(tmp_path: Path) -> None:
    words = ("--chatbot", "rules", "--memory-agent", "ollama:llama3.1:8b")
    with (
        OllamaDouble(brain=lambda _: Reply(seconds=3600)) as double,
        serving(tmp_path / "home", MNEME_OLLAMA_URL=double.url) as server,
    ):
        chatting, typed, _ = await chat(server.environment, *words)
        typed.write(b"I live in Ulm.\n")
        await eventually(lambda: something(double.chats))
        double.brain = by_rules(read_message, compare_memories)
        server.kill()
        said, complaints = await asyncio.wait_for(chatting.communicate(b"/memories\n/memories\n"), 60)
    assert complaints.count(b"mneme: ") == 1, complaints
    assert b"remembering 1 message" in said and b"+ insert I live in Ulm." in said


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_a_conversation_that_is_deleted_beside_its_chat_begins_anew(server: Server) -> None:
    words = ("--thread", "gone", "--user", "lea", "--agents", "rules", "--json")
    chatting, typed, shown = await chat(server.environment, *words)
    typed.write(b"I live in Ulm.\n")
    assert b"Noted." in await asyncio.wait_for(shown.readline(), 60)
    deleted = await asyncio.to_thread(
        server.mneme, "threads", "delete", "chat/lea/gone", "--user", "lea", "--yes"
    )
    assert deleted.returncode == 0, deleted.stderr
    said, complaints = await asyncio.wait_for(chatting.communicate(b"I have a cat.\n"), 60)
    assert not complaints and said.count(b"Noted.") == 1 and b"a cat" in said


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_a_reply_that_fails_on_a_server_ends_the_chat_and_keeps_the_message(tmp_path: Path) -> None:
    with (
        OllamaDouble(brain=lambda _: Reply("Well then. " * 200)) as double,
        serving(tmp_path / "home", MNEME_OLLAMA_URL=double.url) as server,
    ):
        words = ("--chatbot", "ollama:llama3.1:8b", "--memory-agent", "rules")
        chatting, _, _ = await chat(server.environment, *words)
        _, complaints = await asyncio.wait_for(chatting.communicate(b"I live in Ulm.\n"), 60)
        assert b"gave no usable answer" in complaints
        assert b"One message could not be remembered yet: its turn" in complaints
        chatting, _, _ = await chat(server.environment, "--agents", "rules")
        said, complaints = await asyncio.wait_for(chatting.communicate(b"I have a cat.\n"), 60)
        assert b"answering your last message" in said and b"mneme: " not in complaints
        listed = await asyncio.to_thread(server.mneme, "memories", "list", "--json")
        assert "Ulm" in listed.stdout


@pytest.mark.long
@pytest.mark.xdist_group("server")
@pytest.mark.parametrize("is_served", [True, False])
async def test_what_is_forgotten_in_a_chat_is_waited_for_no_more(
    server: Server, tmp_path: Path, is_served: bool
) -> None:
    environment = server.environment if is_served else quiet(tmp_path / "home")
    chatting, typed, shown = await chat(environment, "--user", "ole", "--agents", "rules", "--json")
    typed.write(b"My aunt plays chess.\n")
    assert b"Noted." in await asyncio.wait_for(shown.readline(), 60)

    async def listed() -> str:
        words = ("memories", "list", "--user", "ole", "--json")
        return (await asyncio.to_thread(run_mneme, words, environment, "")).stdout

    known = json.loads(await eventually(listed))
    forget = f"/forget {known['key']} --yes\n".encode()
    said, complaints = await asyncio.wait_for(chatting.communicate(forget), 60)
    assert not complaints and chatting.returncode == 0
    assert b"chess" not in said and b'"asked"' in said.splitlines()[-1]


async def something(found: list[Any]) -> bool:
    return bool(found)


def test_who_reads_no_further_ends_a_command_without_a_traceback(tmp_path: Path) -> None:
    """What the memory agent does meanwhile ends, too."""
    chat = f"printf 'I live in Oslo.\\nI have a cat.\\n' | {sys.executable} -m mneme chat | head -1"
    done = subprocess.run(
        ["sh", "-c", chat], env=quiet(tmp_path / "home"), capture_output=True, text=True, check=True
    )
    assert "/memories" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_message_that_is_not_utf8_is_refused_and_the_next_one_is_kept(tmp_path: Path) -> None:
    """Also where Python would raise at such bytes, as in most locales."""
    strict = quiet(tmp_path / "home", PYTHONIOENCODING="utf-8:strict")

    def mneme(*words: str | bytes, said: bytes = b"") -> tuple[int, str, str]:
        command = [sys.executable, "-m", "mneme", *words]
        done = subprocess.run(command, env=strict, input=said, capture_output=True, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    status, _, complaint = mneme("chat", said=b"\xff\xfe bad\nI have a cat.\n")
    assert (status, complaint.count("Your message is not UTF-8 text.")) == (1, 1)
    assert "Unexpected" not in complaint
    _, again, _ = mneme("chat")
    assert "answering your last message" not in again
    status, _, complaint = mneme("remember", b"\xff\xfe bad words")
    assert (status, complaint.count("What you gave is not UTF-8 text.")) == (1, 1)
    _, listed, _ = mneme("memories", "list", "--json")
    assert [json.loads(each)["memory"]["content"] for each in listed.splitlines()] == ["I have a cat."]
