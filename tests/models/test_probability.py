"""How probable a model holds something: over the wire, with and without log-probabilities."""

import asyncio
import math

import pytest

from mneme.models.asking.probability import ask_likelihood
from mneme.prompts.sharing.answering import AskedQuestion, answer
from tests.doubles.ollama import OllamaDouble, Reply
from tests.doubles.served import WHO

ASKED = AskedQuestion(does="Write.", question="?")


async def test_a_server_that_tells_none_is_asked_once(double: OllamaDouble) -> None:
    double.chat.reply('{"answer": "No."}')
    for _ in range(2):
        assert await ask_likelihood(answer, ASKED, "No.", WHO) is None
    assert len(double.chats) == 1


async def test_of_many_at_once_one_finds_out_whether_a_server_tells_any(double: OllamaDouble) -> None:
    double.chat.reply('{"answer": "No."}')
    found = await asyncio.gather(*(ask_likelihood(answer, ASKED, "No.", WHO) for _ in range(12)))
    assert found == [None] * 12 and len(double.chats) == 1


@pytest.mark.parametrize("who", ["rules", "scripted:x", "anthropic:claude"])
async def test_who_tells_no_probabilities_is_not_asked(double: OllamaDouble, who: str) -> None:
    assert await ask_likelihood(answer, ASKED, "No.", who) is None
    assert not double.chats


def measured(answer: str, weights: dict[str, float]) -> Reply:
    """Reply with an answer in tokens of these probabilities."""
    pieces = ['{"answer":', ' "', *weights, '"}']
    assert "".join(weights) == answer
    sure = {'{"answer":': 1.0, ' "': 0.5, '"}': 0.5}
    told = {piece: {piece: math.log({**sure, **weights}[piece])} for piece in pieces}
    return Reply(pieces, alternatives=told)


async def test_the_likelihood_of_an_answer_is_measured_by_its_own_tokens(double: OllamaDouble) -> None:
    double.chat.reply(measured("A roaming numeral", {"A": 0.2, " roaming": 0.1, " numeral": 0.4}))
    asked = AskedQuestion(does="Write a pun.", question="A number that moves?")
    found = await ask_likelihood(answer, asked, "A roaming\nnumeral", WHO)
    assert found is not None and found.probability == pytest.approx((0.2 * 0.1 * 0.4) ** (1 / 3))
    body = double.chats[0].body
    assert body["format"]["properties"]["answer"] == {"const": "A roaming numeral"} and body["logprobs"]


async def test_what_was_not_the_answer_has_no_likelihood(double: OllamaDouble) -> None:
    double.chat.reply(measured("Something", {"Something": 0.9}))
    assert await ask_likelihood(answer, ASKED, "Else", WHO) is None
