"""The client against a real Ollama with a small model, where MNEME_TEST_OLLAMA says where one is.

MNEME_TEST_OLLAMA_MODEL names the model; the default is the first that the server lists.
"""

import json
import os
from collections.abc import Iterator
from typing import Literal

import httpx
import pytest
from pydantic import BaseModel, Field

from mneme.core.errors import BadAnswer, ModelUnavailable, PromptTooLong
from mneme.core.settings import settings
from mneme.models.asking.asking import Answered, ask, clear_endpoints
from mneme.models.asking.schema import flat, narrowed_schema
from mneme.prompts.prompt import Prompt, Reason, one_of

URL = os.environ.get("MNEME_TEST_OLLAMA", "")
pytestmark = [
    pytest.mark.skipif(not URL, reason="MNEME_TEST_OLLAMA names no Ollama server"),
    pytest.mark.timeout(300),
]


class Asked(BaseModel):
    text: str


class Sorted(BaseModel):
    why: Reason
    kind: Literal["fact", "question"]
    words: list[str] = Field(max_length=2)
    number: int


sort_text = Prompt(
    name="sort_text",
    given=Asked,
    answer=Sorted,
    system="You sort sentences. Say why at great length, list all words, and choose number 99.",
    user="$text",
)
greet = Prompt(name="greet", given=Asked, answer=str, system="Answer in three words.", user="$text")


@sort_text.bound
def offered(given: Asked) -> dict[str, dict[str, object]]:
    return {"number": one_of(range(3)), "words[]": {"maxLength": 12}}


@pytest.fixture
def who(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    listed = httpx.get(f"{URL}/api/tags").json()["models"]
    monkeypatch.setenv("MNEME_OLLAMA_URL", URL)
    monkeypatch.setenv("MNEME_NUM_CTX", "2048")
    settings.cache_clear()
    clear_endpoints()
    yield f"ollama:{os.environ.get('MNEME_TEST_OLLAMA_MODEL') or listed[0]['name']}"
    clear_endpoints()


async def test_the_grammar_holds_every_bound_that_was_sent(who: str) -> None:
    schema = narrowed_schema(flat(Sorted), sort_text.bounds_of(Asked(text="")))
    body = {
        "model": who.removeprefix("ollama:"),
        "messages": [{"role": "user", "content": "Count from 1 to 500, and say number 99."}],
        "format": schema,
        "stream": False,
        "options": {"num_predict": 600, "num_ctx": 2048},
    }
    async with httpx.AsyncClient(timeout=280) as client:
        reply = json.loads((await client.post(f"{URL}/api/chat", json=body)).json()["message"]["content"])
    assert list(reply) == ["why", "kind", "words", "number"]
    assert len(reply["why"]) <= 300
    assert len(reply["words"]) <= 2
    assert all(len(word) <= 12 for word in reply["words"])
    assert reply["number"] in {0, 1, 2}


async def test_a_question_ends_in_an_answer_or_a_typed_failure(who: str) -> None:
    try:
        answered = await ask(sort_text, Asked(text="My dog Max is five."), who)
    except BadAnswer as bad:
        assert bad.raw
    else:
        assert answered.value.number in {0, 1, 2}
        assert answered.reply_tokens > 0


async def test_free_text_ends(who: str) -> None:
    try:
        answered: Answered[str] = await ask(greet, Asked(text="Good morning!"), who)
    except BadAnswer as bad:
        assert bad.raw
    else:
        assert answered.value


async def test_an_unknown_model_is_named(who: str) -> None:
    with pytest.raises(ModelUnavailable, match="nope"):
        await ask(greet, Asked(text="Hi"), "ollama:nope")


async def test_a_prompt_that_does_not_fit_is_refused_not_cut(who: str) -> None:
    with pytest.raises(PromptTooLong):
        await ask(greet, Asked(text="word " * 5000), who)
