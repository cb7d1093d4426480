"""What an Ollama double answers: a reply line by line, and where it is to break off."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from tests.doubles import stand_in
from tests.doubles.stand_in import Json, line, metrics, part, words_of

REPEATS = 30


@dataclass
class Reply(stand_in.Reply):
    """One answer of `/api/chat`, with whatever is to go wrong in it."""

    thinking: str = ""
    done_reason: str = "stop"
    status: int = 200
    error: str = ""
    error_after: int | None = None
    cut_after: int | None = None
    broken_after: int | None = None
    done: bool = True
    empty: bool = False
    calls_in_last_line: bool = False
    token_seconds: float | None = None
    prompt_tokens: int | None = None
    alternatives: Mapping[str, Mapping[str, float]] | None = None
    """For a piece, the log-probabilities of what could stand there; None: a server that tells none."""


@dataclass
class Embedding:
    """One answer of `/api/embed` in place of the hashed vectors."""

    vectors: list[list[float]] = field(default_factory=list)
    status: int = 200
    error: str = ""


Answer = str | Json | Reply | Embedding
Brain = Callable[[Json], Answer]


def silent(body: Json) -> Answer:
    """Refuse, because neither a script nor a brain has an answer."""
    return Reply(status=500, error="the double has no answer for this request")


class Accident(Exception):  # noqa: N818  (what the double is asked for, not an error of it)
    """The end of a stream that breaks off: with a last line, with none (b""), or with a cut socket (None)."""

    def __init__(self, line: bytes | None) -> None:
        super().__init__(line)
        self.line = line


async def lines_of(body: Json, reply: Reply, count: int, pause: float) -> AsyncIterator[bytes]:
    """Yield the stream's lines; raise `Accident` where it is to break off."""
    if reply.empty:
        return
    if reply.thinking and body.get("think") is not False:
        yield line(part(body, thinking=reply.thinking))
    limit = body.get("options", {}).get("num_predict", -1)
    sent = 0
    for piece in islice(_pieces(reply), limit if limit >= 0 else None):
        yield line(part(body, content=piece) | _weights(body, reply, piece))
        sent += 1
        await asyncio.sleep(pause)
    if reply.done:
        reason = "length" if sent == limit else reply.done_reason
        for each in _ending(body, reply, metrics(reason, count, sent)):
            yield each


def _weights(body: Json, reply: Reply, piece: str) -> Json:
    """Tell the log-probabilities of a piece and its alternatives, where they are asked for."""
    if not body.get("logprobs") or reply.alternatives is None:
        return {}
    told = reply.alternatives.get(piece, {piece: 0.0})
    top = [{"token": token, "logprob": weight} for token, weight in told.items()]
    return {"logprobs": [{"token": piece, "logprob": told[piece], "top_logprobs": top}]}


def _pieces(reply: Reply) -> Iterator[str]:
    """Yield the reply's tokens, as far as they come: Ollama gives up at 30 of the same, but for space."""
    last, same, sent = "", 0, 0
    for word in words_of(reply.content):
        _come_to(reply, sent)
        same = same + 1 if word.strip() == last else 1
        if same > REPEATS:
            raise Accident(b"")
        yield word
        last, sent = word.strip(), sent + 1
    _come_to(reply, sent)


def _come_to(reply: Reply, sent: int) -> None:
    """Break off where the reply says that something goes wrong after so many tokens."""
    if sent == reply.cut_after:
        raise Accident(None)
    if sent == reply.error_after:
        raise Accident(line({"error": reply.error}))
    if sent == reply.broken_after:
        raise Accident(b'{"model": "x", "mess\n')


def _ending(body: Json, reply: Reply, metrics: Json) -> Iterator[bytes]:
    calls = [{"function": call} for call in reply.tool_calls]
    if calls and not reply.calls_in_last_line:
        yield line(part(body, tool_calls=calls))
    last: Json = {"tool_calls": calls} if calls and reply.calls_in_last_line else {}
    yield line(part(body, **last) | metrics)
