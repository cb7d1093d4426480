"""Nodes that say in their graph's state what their questions cost."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from langgraph.runtime import Runtime

from mneme.models.asking.counting import Asked, counting

S = TypeVar("S")
R = TypeVar("R", bound=Runtime[Any])
Node = Callable[[S, R], Awaitable[dict[str, Any]]]


def counted(node: Node[S, R]) -> Node[S, R]:
    """Add to a node's update, as `asked`, the questions that it asked; a decorator."""

    @wraps(node)
    async def counting_node(state: S, runtime: R) -> dict[str, Any]:
        with counting() as asked:
            update = await node(state, runtime)
        return {**update, "asked": Asked(**asked)}

    return counting_node
