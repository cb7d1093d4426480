"""The MCP server under the LangGraph server, as streamable HTTP, with the server's keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mneme.api.operation import Operations
from mneme.integrations.mcp import MCP_CALLER, mcp_server
from mneme.integrations.offers import MCP_TOOLS, Offer, chosen
from mneme.server.entrance import MAX_MCP
from mneme.server.rest import Opened
from mneme.stores.ledger.records import LOCAL

MCP_PATH = "/mneme/mcp"


def mcp_route(opened: Mapping[type[Operations], Opened]) -> tuple[StreamableHTTPSessionManager, Route]:
    """Return the route, and the session manager that must run while it is served.

    With keys the data is the key's user's; `?team=` names one of that user's teams, and without keys `?user=`
    the user. `?tools=` names the tools, or `all`.
    """

    def offered(request: Request) -> Sequence[Offer]:
        return chosen(
            [each for each in request.query_params.get("tools", "").split(",") if each] or MCP_TOOLS
        )

    async def do(offer: Offer, given: Mapping[str, Any], request: Request) -> Any:
        owner = request.query_params.get(offer.kind.OWNER, LOCAL)
        reads = offer.name if offer.operation.is_reading else ""
        operations = await opened[offer.kind](request, owner, MCP_CALLER, reads)
        return await offer.call(operations, given, "auto")

    # Stateless: the library checks whose a session is only for users of its own class, which ours are not.
    manager = StreamableHTTPSessionManager(
        mcp_server(do, offered), json_response=True, stateless=True, max_request_body_size=MAX_MCP
    )
    return manager, Route(MCP_PATH, _Posted(StreamableHTTPASGIApp(manager)))


class _Posted:  # a class: Starlette would call a plain function with a request
    """Pass on POST alone: without sessions there is no stream to read with GET, and nothing to delete."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = Response(status_code=405, headers={"allow": "POST"})
        await (self._app if scope["method"] == "POST" else refused)(scope, receive, send)
