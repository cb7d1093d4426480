"""What the steps of a graph ask: questions, calls and tokens, counted by one measure whoever answers."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar, cast

from mneme.models.asking.counting import Asked, counting

Node = TypeVar("Node", bound=Callable[..., Awaitable[dict[str, Any]]])


def counted(node: Node) -> Node:
    """Add to a node's update, as `asked`, the questions that it asked; a decorator."""

    @wraps(node)
    async def counting_node(state: Any, runtime: Any) -> dict[str, Any]:
        with counting() as asked:
            update = await node(state, runtime)
        return {**update, "asked": Asked(**asked)}

    return cast(Node, counting_node)
