"""A reply of Ollama line by line, and where it is to break off."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

from mneme.evals.doubles.http import as_line
from mneme.evals.doubles.scripts import Json, Reply

REPEATS = 30


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
        yield as_line(_part(body, thinking=reply.thinking))
    limit = body.get("options", {}).get("num_predict", -1)
    sent = 0
    for piece in islice(_pieces(reply), limit if limit >= 0 else None):
        yield as_line(_part(body, content=piece) | _weights(body, reply, piece))
        sent += 1
        await asyncio.sleep(pause)
    if reply.done:
        reason = "length" if sent == limit else reply.done_reason
        for line in _ending(body, reply, _metrics(reason, count, sent)):
            yield line


def _weights(body: Json, reply: Reply, piece: str) -> Json:
    """Tell the log-probabilities of a piece and its alternatives, where they are asked for."""
    if not body.get("logprobs") or reply.alternatives is None:
        return {}
    told = reply.alternatives.get(piece, {piece: 0.0})
    top = [{"token": token, "logprob": weight} for token, weight in told.items()]
    return {"logprobs": [{"token": piece, "logprob": told[piece], "top_logprobs": top}]}


def _pieces(reply: Reply) -> Iterator[str]:
    """Yield the reply's tokens, as far as they come: Ollama gives up at 30 of the same, but for space."""
    words = re.findall(r"\s*\S+|\s+", reply.content) if isinstance(reply.content, str) else reply.content
    last, same, sent = "", 0, 0
    for word in words:
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
        raise Accident(as_line({"error": reply.error}))
    if sent == reply.broken_after:
        raise Accident(b'{"model": "x", "mess\n')


def _ending(body: Json, reply: Reply, metrics: Json) -> Iterator[bytes]:
    calls = [{"function": call} for call in reply.tool_calls]
    if calls and not reply.calls_in_last_line:
        yield as_line(_part(body, tool_calls=calls))
    last: Json = {"tool_calls": calls} if calls and reply.calls_in_last_line else {}
    yield as_line(_part(body, **last) | metrics)


def _part(body: Json, *, content: str = "", **more: Any) -> Json:
    message = {"role": "assistant", "content": content, **more}
    return {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def _metrics(reason: str, prompt: int, tokens: int) -> Json:
    counts = {"prompt_eval_count": prompt, "eval_count": tokens, "total_duration": 1, "load_duration": 1}
    return {"done": True, "done_reason": reason} | {name: n for name, n in counts.items() if n}
