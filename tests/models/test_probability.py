"""How probable a model holds something: over the wire, with and without log-probabilities."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mneme.core.settings import settings
from mneme.models.asking import probability
from mneme.models.asking.asking import clear_endpoints
from mneme.models.asking.probability import ask_likelihood, ask_probability, probability_of_true
from mneme.prompts.sharing.answering import Asked, answer
from mneme.prompts.sharing.examples import Example
from mneme.prompts.sharing.grading import Comparison, contradicts
from tests.doubles.ollama import OllamaDouble, Reply

WHO = "ollama:llama3.1:8b"
GIVEN = Comparison(example=Example(question="A pun?", answer="Yes."), question="Another?", answer="No.")


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        monkeypatch.setenv("MNEME_HOME", str(tmp_path))
        monkeypatch.setenv("MNEME_OLLAMA_URL", running.url)
        _forget()
        yield running
    _forget()


def _forget() -> None:
    settings.cache_clear()
    clear_endpoints()


def said(word: str, weights: dict[str, float]) -> Reply:
    told = {f" {token}": math.log(weight) for token, weight in weights.items()}
    return Reply(['{"contradicts":', f" {word}", "}"], alternatives={f" {word}": told})


async def test_the_probability_is_that_of_yes_against_no(double: OllamaDouble) -> None:
    double.chat.reply(said("false", {"false": 0.6, "true": 0.2, "maybe": 0.1}))
    weighed = await ask_probability(contradicts, GIVEN, WHO, lane="background")
    assert weighed is not None and weighed.responder == WHO
    assert weighed.probability == pytest.approx(0.25)
    body = double.chats[0].body
    assert (body["logprobs"], body["top_logprobs"]) == (True, probability.ALTERNATIVES)


async def test_a_reply_that_cannot_be_used_is_asked_for_again(double: OllamaDouble) -> None:
    double.chat.reply('{"contradicts": "perhaps"}', said("true", {"true": 0.9, "false": 0.1}))
    weighed = await ask_probability(contradicts, GIVEN, WHO)
    assert weighed is not None and weighed.probability == pytest.approx(0.9)


async def test_a_server_that_tells_none_is_asked_once(double: OllamaDouble) -> None:
    double.chat.reply('{"contradicts": true}')
    assert await ask_probability(contradicts, GIVEN, WHO) is None
    assert await ask_probability(contradicts, GIVEN, WHO) is None
    assert len(double.chats) == 1


async def test_of_many_at_once_one_finds_out_whether_a_server_tells_any(double: OllamaDouble) -> None:
    double.chat.reply('{"answer": "No."}')
    asked = Asked(does="Write.", question="?")
    found = await asyncio.gather(*(ask_likelihood(answer, asked, "No.", WHO) for _ in range(12)))
    assert found == [None] * 12 and len(double.chats) == 1


@pytest.mark.parametrize("who", ["rules", "scripted:x", "anthropic:claude"])
async def test_who_tells_no_probabilities_is_not_asked(double: OllamaDouble, who: str) -> None:
    assert await ask_probability(contradicts, GIVEN, who) is None
    assert not double.chats


def token(text: str, **others: float) -> dict[str, Any]:
    before = text[: len(text) - len(text.lstrip())]
    top = [{"token": before + name, "logprob": math.log(weight)} for name, weight in others.items()]
    return {"token": text, "logprob": math.log(others[text.strip()]) if others else 0.0, "top_logprobs": top}


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([token('{"'), token("contradicts"), token('":'), token("true", true=0.5, false=0.5)], 0.5),
        ([token('{"contradicts":'), token(" t", t=0.3, f=0.1), token("rue"), token("}")], 0.75),
        ([token('{"contradicts":'), token("false", false=0.9), token("}")], None),
        ([token("no"), token(" JSON")], None),
    ],
)
def test_the_deciding_token_is_found_however_the_reply_is_cut_up(
    tokens: list[dict[str, Any]], expected: float | None
) -> None:
    found = probability_of_true(tokens)
    assert found == (None if expected is None else pytest.approx(expected))


def measured(answer: str, weights: dict[str, float]) -> Reply:
    """Reply with an answer in tokens of these probabilities."""
    pieces = ['{"answer":', ' "', *weights, '"}']
    assert "".join(weights) == answer
    sure = {'{"answer":': 1.0, ' "': 0.5, '"}': 0.5}
    told = {piece: {piece: math.log({**sure, **weights}[piece])} for piece in pieces}
    return Reply(pieces, alternatives=told)


async def test_the_likelihood_of_an_answer_is_measured_by_its_own_tokens(double: OllamaDouble) -> None:
    double.chat.reply(measured("A roaming numeral", {"A": 0.2, " roaming": 0.1, " numeral": 0.4}))
    asked = Asked(does="Write a pun.", question="A number that moves?")
    found = await ask_likelihood(answer, asked, "A roaming\nnumeral", WHO)
    assert found is not None and found.probability == pytest.approx((0.2 * 0.1 * 0.4) ** (1 / 3))
    body = double.chats[0].body
    assert body["format"]["properties"]["answer"] == {"const": "A roaming numeral"} and body["logprobs"]


async def test_what_was_not_the_answer_has_no_likelihood(double: OllamaDouble) -> None:
    double.chat.reply(measured("Something", {"Something": 0.9}))
    assert await ask_likelihood(answer, Asked(does="Write.", question="?"), "Else", WHO) is None
