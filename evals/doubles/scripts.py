"""What an `OllamaDouble` is to answer, and what it was asked."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]


@dataclass
class Model:
    """One model that the server has: what `/api/show` tells and how it behaves at its limits."""

    name: str = "llama3.1:8b"
    capabilities: tuple[str, ...] = ("completion", "tools")
    context_length: int = 131072
    dimension: int = 8
    template: str = "{{ .Prompt }}"
    quantization: str = "Q4_K_M"
    size: int = 4_900_000_000
    size_vram: int = 4_900_000_000
    overflow: Literal["cut", "error"] = "cut"
    vocabulary: Json = field(default_factory=dict)


@dataclass
class Reply:
    """One answer of `/api/chat`, with whatever is to go wrong in it."""

    content: str | Iterable[str] = ""
    thinking: str = ""
    tool_calls: tuple[Json, ...] = ()
    done_reason: str = "stop"
    status: int = 200
    error: str = ""
    error_after: int | None = None
    cut_after: int | None = None
    broken_after: int | None = None
    done: bool = True
    empty: bool = False
    calls_in_last_line: bool = False
    seconds: float | None = None
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


@dataclass
class Request:
    """What a client sent, and when what happened to it (seconds of `time.monotonic`)."""

    path: str
    headers: Mapping[str, str]
    body: Json
    arrived: float
    first_token: float | None = None
    ended: float | None = None
    aborted: bool = False
    method: str = ""
    raw: bytes = b""


class Script:
    """Answers in the order in which they are to be given."""

    def __init__(self) -> None:
        self._answers: deque[Answer | Brain] = deque()

    def reply(self, *answers: Answer | Brain) -> None:
        """Append answers: a text, JSON, a `Reply`, or a function of the request that returns one."""
        self._answers.extend(answers)

    def next(self, body: Json, otherwise: Brain) -> Answer:
        """Return the next answer, or the brain's when the script is over."""
        answer = self._answers.popleft() if self._answers else otherwise
        return answer(body) if callable(answer) else answer


def silent(body: Json) -> Answer:
    """Refuse, because neither a script nor a brain has an answer."""
    return Reply(status=500, error="the double has no answer for this request")


def as_reply(answer: Answer) -> Reply:
    """Return an answer of a chat as a reply."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, Embedding):
        raise TypeError("a chat is not answered by an Embedding")
    return Reply(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
