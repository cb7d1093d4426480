"""The operations as LangChain tools, for an agent of one's own."""

from collections.abc import Collection
from typing import Any

from langchain_core.tools import StructuredTool, ToolException
from pydantic import ValidationError

from mneme.api.operation import complaint
from mneme.client.memory import Owned
from mneme.integrations.offers import AGENT_TOOLS, FAILURES, Offer, chosen, error_text
from mneme.integrations.shared import awaited, blocking
from mneme.models.asking.responders import check_form
from mneme.stores.ledger.records import LOCAL

AGENT_CALLER = "agent"
"""Author of an agent tool's changes, as their history names it."""


def tools(
    user: str = LOCAL,
    team: str = LOCAL,
    *,
    names: Collection[str] = AGENT_TOOLS,
    memory_agent: str = "auto",
    caller: str = AGENT_CALLER,
) -> list[StructuredTool]:
    """Return agent tools that search and change the memories of a user and a team.

    Each works with `invoke` and `ainvoke`. A model reads a short text; the artifact of a tool message is the
    operation's typed result. An error is a text that says what to do. `names` chooses the tools, `["all"]`
    all of them; a tool that is not given cannot be called. Raises BadInput for a name that no tool has, or
    that names no model.

    >>> import mneme
    >>> by_name = {tool.name: tool for tool in mneme.tools("ann", memory_agent="rules")}
    >>> told = by_name["remember"].invoke({"text": "I live in Oslo."})
    >>> print(by_name["search_memories"].invoke({"query": "Where does the user live?"}))  # doctest: +ELLIPSIS
    [...] I live in Oslo. (since ...)
    """
    check_form(memory_agent)
    owners = {"user": user, "team": team}
    return [
        _tool(each, Owned(each.kind, owners[each.kind.OWNER], caller), memory_agent) for each in chosen(names)
    ]


def _tool(offer: Offer, owned: Owned, memory_agent: str) -> StructuredTool:
    async def arun(**given: Any) -> tuple[str, Any]:
        try:
            result = await awaited(owned, lambda on: offer.call(on, given, memory_agent))
        except FAILURES as error:
            raise ToolException(error_text(error)) from error
        return "\n".join(offer.told(result)), result

    def run(**given: Any) -> tuple[str, Any]:
        return blocking(arun(**given))

    return StructuredTool(
        name=offer.name,
        description=offer.description,
        args_schema=offer.arguments,
        func=run,
        coroutine=arun,
        response_format="content_and_artifact",
        handle_tool_error=True,  # the model is told the error, and the agent goes on
        handle_validation_error=_not_valid,
    )


def _not_valid(error: Any) -> str:
    """Tell a model which of its arguments are invalid."""
    wrong = error.errors() if isinstance(error, ValidationError) else []
    said = "; ".join(complaint(each["loc"], each["msg"]) for each in wrong)
    return f"The arguments are not valid: {said or error}. Correct them and call again."
