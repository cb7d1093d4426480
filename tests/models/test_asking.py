"""Who answers a question: rules, scripts, models and providers, on which lane, and without blocking."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, Field

from mneme.core.errors import BadAnswer, BadInput, MnemeError, ModelUnavailable
from mneme.models.asking import responders
from mneme.models.asking.asking import ask, auto_notice, resolve
from mneme.models.asking.counting import tokens
from mneme.models.asking.gate import gate
from mneme.prompts.prompt import Prompt
from mneme.rules.registry import answer as by_rule
from mneme.rules.registry import rule
from tests.doubles.ollama import Model, OllamaDouble, Reply, Request, by_rules
from tests.doubles.scripts import script
from tests.doubles.served import GOOD, NOTE, WHO, Note, Sorting, greet, point_at, served, sort_note
from tests.doubles.waiting import until

ROOT = Path(__file__).parents[2]


# Who answers.


async def test_rules_answer_by_the_rule() -> None:
    answered = await ask(sort_note, NOTE, "rules")
    assert answered.value == Sorting(reason="It speaks of me.", route="store")
    assert (answered.responder, answered.attempts) == ("rules", 1)
    assert answered.prompt_tokens == tokens("\n".join(sort_note.wording(NOTE))), "what a model would read"


async def test_a_rule_that_fails_its_own_check_is_not_believed() -> None:
    script("wrong", {"sort_note": [Sorting(reason="", route="store", quote="Bonn")]})
    with pytest.raises(BadAnswer, match="quote 'Bonn' is not in the note"):
        await ask(sort_note, NOTE, "scripted:wrong")


async def test_a_script_answers_in_order_and_says_when_it_is_over() -> None:
    script("two", {"sort_note": [Sorting(reason="a", route="store"), GOOD], "greet": ["Good day."]})
    assert (await ask(sort_note, NOTE, "scripted:two")).value.reason == "a"
    assert (await ask(sort_note, NOTE, "scripted:two")).value.reason == "home"
    assert (await ask(greet, NOTE, "scripted:two")).value == "Good day."
    with pytest.raises(BadInput, match="'two' has no answer left for 'sort_note'"):
        await ask(sort_note, NOTE, "scripted:two")
    with pytest.raises(BadInput, match="No provider is called 'scripted'"):
        await ask(sort_note, NOTE, "scripted:three")


async def test_a_script_can_fail_as_a_model_does() -> None:
    script("failing", {"sort_note": [ModelUnavailable("gone"), "{", 'no, "text"']})
    with pytest.raises(ModelUnavailable, match="gone"):
        await ask(sort_note, NOTE, "scripted:failing")
    with pytest.raises(BadAnswer) as failure:
        await ask(sort_note, NOTE, "scripted:failing")
    assert failure.value.raw == "{"


@pytest.mark.parametrize("who", ["", "llama3.1", "ollama:", ":x", "rules:x", "scripted:"])
async def test_an_unknown_form_is_refused_with_the_accepted_ones(who: str) -> None:
    with pytest.raises(BadInput) as refusal:
        await ask(sort_note, NOTE, who)
    assert "ollama:<model>" in refusal.value.hint


async def test_auto_is_ollama_where_it_has_the_model(double: OllamaDouble) -> None:
    double.chat.reply(GOOD)
    assert (await ask(sort_note, NOTE, "auto")).responder == WHO
    assert auto_notice() == ""


async def test_auto_is_rules_where_the_model_is_missing(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_MODEL", "qwen3:4b")
    point_at(monkeypatch, double.url)
    assert (await ask(sort_note, NOTE, "auto")).responder == "rules"
    assert "has no qwen3:4b: answering by rules. Get a model: ollama pull qwen3:4b" in auto_notice()


async def test_auto_is_whom_the_settings_name(double: OllamaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_AUTO", "openai:some-model")
    point_at(monkeypatch, double.url)
    assert await resolve("auto") == "openai:some-model"
    assert await resolve("rules") == "rules"
    monkeypatch.setenv("MNEME_AUTO", "some-model")
    point_at(monkeypatch, double.url)
    with pytest.raises(BadInput):
        await resolve("auto")


async def test_auto_becomes_a_model_that_is_pulled_meanwhile(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_MODEL", "qwen3:4b")
    point_at(monkeypatch, double.url)
    assert await resolve("auto") == "rules"
    double.models["qwen3:4b"] = Model("qwen3:4b")
    assert await resolve("auto") == "rules", "it does not look at each question"
    monkeypatch.setattr(responders, "LOOK_AGAIN_SECONDS", 0.0)
    assert await resolve("auto") == "ollama:qwen3:4b"
    assert auto_notice() == ""


async def test_auto_is_rules_where_nobody_answers_and_is_decided_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    silence = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silence.getsockname()[1]}"
    point_at(monkeypatch, url)
    assert auto_notice() == ""
    with caplog.at_level("INFO", "mneme.models"):
        assert await resolve("auto") == "rules"
        assert calls_to(silence) > 0
        assert [await resolve("auto") for _ in range(100)] == ["rules"] * 100
    assert calls_to(silence) == 0
    line = auto_notice()
    assert line.startswith(f"{url} gives no answer in time: answering by rules. ")
    assert [record.getMessage() for record in caplog.records] == [line]
    silence.close()


def calls_to(server: socket.socket) -> int:
    """Count the connections that came to a server since the last count."""
    server.setblocking(False)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


# Other providers.


class Spelled(FakeListChatModel):
    """A chat model of another provider, that remembers what it was shown."""

    seen: list[list[BaseMessage]] = Field(default_factory=list)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.seen.append(messages)
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk


def provide(
    monkeypatch: pytest.MonkeyPatch, provider: str, chat: str, open_: Callable[..., BaseChatModel]
) -> None:
    """Install a package of a provider that LangChain knows; LangChain keeps it, so use each once."""
    package = types.ModuleType(f"langchain_{provider}")
    setattr(package, chat, open_)
    monkeypatch.setitem(sys.modules, package.__name__, package)


async def test_any_provider_is_told_the_schema_and_held_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Spelled(responses=["I think so.", GOOD])
    provide(monkeypatch, "groq", "ChatGroq", lambda **_: model)
    answered = await ask(sort_note, NOTE, "groq:some-model")
    assert (answered.value.route, answered.attempts) == ("store", 2)
    assert "JSON schema" in str(model.seen[0][0].content)
    assert "not a complete JSON object" in str(model.seen[1][-1].content)


async def test_a_providers_reply_that_goes_in_circles_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Spelled(responses=["round and " * 4000, GOOD])
    provide(monkeypatch, "xai", "ChatXAI", lambda **_: model)
    answered = await ask(sort_note, NOTE, "xai:some-model")
    assert (answered.value.route, answered.attempts) == ("store", 2)
    assert len(model.seen[1]) == len(model.seen[0]), "a circle is not shown back"


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    with pytest.raises(MnemeError) as failure:
        await ask(sort_note, NOTE, "openai:gpt-4o-mini")
    assert failure.value.hint == "Install it: pip install langchain-openai"


async def test_a_provider_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_key(**_: Any) -> BaseChatModel:
        raise ValueError("MISTRAL_API_KEY is not set")

    provide(monkeypatch, "fireworks", "ChatFireworks", lambda **_: Spelled(responses=[]))
    provide(monkeypatch, "mistralai", "ChatMistralAI", without_key)
    with pytest.raises(ModelUnavailable, match="fireworks:m does not answer") as failure:
        await ask(sort_note, NOTE, "fireworks:m")
    assert "key" in failure.value.hint
    with pytest.raises(ModelUnavailable, match="MISTRAL_API_KEY is not set"):
        await ask(sort_note, NOTE, "mistralai:m")


async def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MnemeError) as failure:
        await ask(sort_note, NOTE, "openai:gpt-4o-mini")
    assert failure.value.hint.startswith('Install it: pip install "mneme-agents[providers]"')
    assert "ollama:openai:gpt-4o-mini" in failure.value.hint


async def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(BadInput, match="No provider is called 'nobody'"):
        await ask(sort_note, NOTE, "nobody:x")


# The lanes, on a real socket.


@pytest.mark.parametrize("parallel", [1, 4])
async def test_a_hundred_background_calls_do_not_delay_a_user(
    monkeypatch: pytest.MonkeyPatch, parallel: int
) -> None:
    """Let background calls end only when all users were answered: a user who waited for one would hang."""
    background = Reply(GOOD, seconds=3600)
    with served(monkeypatch, parallel=parallel) as double:
        double.brain = lambda body: background if body.get("format") else "Hello my dear friend."
        tasks = [asyncio.create_task(ask(sort_note, NOTE, WHO, lane="background")) for _ in range(100)]
        for _ in range(7):
            await until(lambda: is_full(double, parallel))
            before = len(double.chats)
            assert (await ask(greet, NOTE, WHO)).value == "Hello my dear friend."
            assert kinds(double)[before] == "greeting", "it came before all that waited"
        assert not any(task.done() for task in tasks)
        await until(lambda: is_full(double, parallel))
        background.seconds = 0
        await asyncio.gather(*(ask(greet, NOTE, WHO) for _ in range(parallel)))
        assert {(await task).value.route for task in tasks} == {"store"}
        assert sum(request.aborted for request in double.chats) == 7 + parallel


async def test_one_owner_s_background_does_not_wait_for_all_of_another_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The owner is in the metadata of the run that asks."""
    with served(monkeypatch, parallel=1, brain=answering) as double:
        double.chat.reply(Reply(GOOD, seconds=3600))
        bobs = [asyncio.create_task(asked_for("bob")) for _ in range(3)]
        await until(lambda: double.chats)
        carols = asyncio.create_task(asked_for("carol"))
        await until(lambda: gate(double.url).waiting("background") == 3)
        await ask(greet, NOTE, WHO)  # in place of the one that never ends
        await carols
        assert not all(each.done() for each in bobs)
        await asyncio.gather(*bobs)


async def asked_for(owner: str) -> None:
    async def sort(_: None) -> None:
        await ask(sort_note, NOTE, WHO, lane="background")

    await RunnableLambda(sort).ainvoke(None, {"metadata": {"owner": owner}})


def unfinished(double: OllamaDouble) -> list[Request]:
    """Return the requests that the server is at."""
    return [request for request in double.chats if request.ended is None]


def is_full(double: OllamaDouble, parallel: int) -> bool:
    """Say whether the server is at as many notes as it takes, the last of them begun after the last greeting.

    A server notices late that a request was given up.
    """
    return kinds(double)[-1:] == ["note"] and len(unfinished(double)) == parallel


def kinds(double: OllamaDouble) -> list[str]:
    """Say of each chat request whether it sorts a note or greets."""
    return ["note" if request.body.get("format") else "greeting" for request in double.chats]


def answering(body: dict[str, Any]) -> str:
    return GOOD if body.get("format") else "Hello my dear friend."


async def test_preempted_work_is_done_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, parallel=1, brain=answering) as double:
        double.chat.reply(Reply(GOOD, seconds=3600))
        work = asyncio.create_task(ask(sort_note, NOTE, WHO, lane="background"))
        await until(lambda: double.chats)
        await ask(greet, NOTE, WHO)
        assert (await work).value.route == "store"
        assert (await work).attempts == 1
        assert kinds(double) == ["note", "greeting", "note"]


# The double's brain.


async def test_the_double_answers_by_rules_what_it_recognises(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes(
        message="Line one.\nLine $two [0] x", before=["user: a\nb", "assistant: [1] c"], when="", n=3
    )
    with served(monkeypatch, brain=by_rules(sort_note, greet, repeat)):
        assert (await ask(sort_note, NOTE, WHO)).value == by_rule(sort_note, NOTE)
        assert (await ask(greet, NOTE, WHO)).value == by_rule(greet, NOTE)
        assert (await ask(repeat, notes, WHO)).value.notes == notes.model_dump_json()
        empty = Notes(message="x")
        assert (await ask(repeat, empty, WHO)).value.notes == empty.model_dump_json()


class Notes(BaseModel):
    """Everything that a wording may have to render."""

    message: str
    before: list[str] = []
    when: str = ""
    n: int = 0


class Repeated(BaseModel):
    """What was given, as JSON."""

    notes: str


repeat = Prompt(
    name="repeat",
    given=Notes,
    answer=Repeated,
    system="You repeat.",
    user="Before:\n$before\n\nAt ${when}, $n times:\n$message",
)


@rule(repeat)
def repeat_by_rule(given: Notes) -> Repeated:
    """Repeat what was given."""
    return Repeated(notes=given.model_dump_json())


# What is imported, and what blocks.


def test_nothing_blocks_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `langgraph dev` does, fail on any blocking call in the loop; in a process without warm imports."""
    pytest.importorskip("blockbuster", reason="the extra `serve` is not installed")
    code = (
        "import asyncio, os, sys\n"
        "from blockbuster import blockbuster_ctx\n"
        "from tests.doubles.served import GOOD, WHO, NOTE, greet, sort_note\n"
        "from mneme.models.asking.asking import ask\n"
        "from mneme.models.embedding.embedders import open_embedder\n"
        "async def main():\n"
        "    for who in ('auto', 'rules', 'ollama:llama3.1:8b'):\n"
        "        print((await ask(greet, NOTE, who)).responder)\n"
        "        await ask(sort_note, NOTE, who, lane='background')\n"
        "    print(len(await (await open_embedder('ollama:nomic')).embed_query('x')))\n"
        "with blockbuster_ctx():\n"
        "    asyncio.run(main())\n"
        "sys.stdout.flush()\n"
        "os._exit(0)\n"  # what blockbuster patches does not always outlive the interpreter's end
    )
    with served(monkeypatch, Model(), Model("nomic", ("embedding",)), brain=answering):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [WHO, "rules", WHO, "8"]


def test_importing_the_asking_is_light() -> None:
    heavy = ["torch", "transformers", "sentence_transformers", "onnxruntime", "langchain", "langchain_ollama"]
    code = f"import sys, mneme.models.asking.asking; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_tracing_means_no_client_of_langsmith() -> None:
    code = (
        "import asyncio, sys\n"
        "from tests.doubles.served import GOOD, WHO, NOTE, sort_note\n"
        "from mneme.models.asking.asking import ask\n"
        "import socket\n"
        "socket.socket.connect = lambda *a: sys.exit('connected')\n"
        "print(asyncio.run(ask(sort_note, NOTE, 'rules')).value.route, 'langsmith.client' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "store"


def test_every_kind_of_chat_model_is_one_to_langchain() -> None:
    from mneme.models.asking.asking import FixedReply  # noqa: PLC0415  (only here)

    assert issubclass(FixedReply, BaseChatModel)
    assert FixedReply(text="Good day.").invoke("x").text == "Good day."
    assert Note(message="x").message == "x"
