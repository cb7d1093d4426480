"""What questions cost: calls and tokens, counted by one measure whoever answers.

A model reports its tokens. Where rules or a script answer, the words that a model would have read and
written are counted by the estimate of `models/asking/budget.py`; such counts are labelled by their responder.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

from pydantic import BaseModel
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer
from mneme.models.asking.asking import Answered
from mneme.models.asking.budget import tokens
from mneme.models.asking.counting import Asked, counting
from mneme.prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)
Node = TypeVar("Node", bound=Callable[..., Awaitable[dict[str, Any]]])


class Cost(TypedDict):
    """Calls of a model and the tokens it read and wrote."""

    calls: int
    prompt_tokens: int
    reply_tokens: int


@dataclass
class CostCounter:
    """The costs of one step, added up."""

    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0

    def add(self, question: Prompt[G, A], given: G, answered: Answered[A]) -> A:
        """Count an answer and return its value."""
        cost = cost_of(question, given, answered)
        self.calls += cost["calls"]
        self.prompt_tokens += cost["prompt_tokens"]
        self.reply_tokens += cost["reply_tokens"]
        return answered.value

    def failed(self, question: Prompt[G, A], given: G, bad: BadAnswer) -> None:
        """Count a question that got no usable answer: one reading at the least, and the last reply."""
        self.calls += 1
        self.prompt_tokens += tokens("\n".join(question.wording(given)))
        self.reply_tokens += tokens(bad.raw)

    @property
    def tokens(self) -> int:
        """Return the tokens that were counted."""
        return self.prompt_tokens + self.reply_tokens

    def cost(self) -> Cost:
        """Return what was counted."""
        return Cost(calls=self.calls, prompt_tokens=self.prompt_tokens, reply_tokens=self.reply_tokens)


def cost_of(question: Prompt[G, A], given: G, answered: Answered[A]) -> Cost:
    """Return what an answer cost: as the model reports it, else estimated from the words."""
    if answered.prompt_tokens:
        used = (answered.prompt_tokens, answered.reply_tokens)
        return Cost(calls=answered.attempts, prompt_tokens=used[0], reply_tokens=used[1])
    read = tokens("\n".join(question.wording(given)))
    value = answered.value
    written = tokens(value if isinstance(value, str) else value.model_dump_json())
    return Cost(calls=answered.attempts, prompt_tokens=read, reply_tokens=written)


def total(one: Cost, other: Cost) -> Cost:
    """Add two costs up; the reducer of a graph's state, whose first value is empty."""
    return Cost(
        calls=one.get("calls", 0) + other["calls"],
        prompt_tokens=one.get("prompt_tokens", 0) + other["prompt_tokens"],
        reply_tokens=one.get("reply_tokens", 0) + other["reply_tokens"],
    )


def counted(node: Node) -> Node:
    """Add to a node's update, as `asked`, the questions that it asked; a decorator."""

    @wraps(node)
    async def counting_node(state: Any, runtime: Any) -> dict[str, Any]:
        with counting() as asked:
            update = await node(state, runtime)
        return {**update, "asked": Asked(**asked)}

    return cast(Node, counting_node)
