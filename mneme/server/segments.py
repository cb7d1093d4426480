"""Parameters in paths as they were sent: `%2F` in one is a slash of the parameter, not of the path."""

from urllib.parse import unquote

from pydantic import BeforeValidator
from starlette.types import ASGIApp, Receive, Scope, Send

from mneme.server.problems import is_ours

SLASH = "\x1f"
"""What a path has for a slash within a parameter: no name can hold it."""


class Segments:
    """Middleware that takes a path apart before it is decoded, where servers decode it before."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with `SLASH` for each slash within a parameter."""
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower() and is_ours(scope["path"]):
            parts = [unquote(each).replace("/", SLASH) for each in raw.decode("latin-1").split("/")]
            scope = {**scope, "path": "/".join(parts)}
        await self._app(scope, receive, send)


AS_SENT = BeforeValidator(lambda parameter: parameter.replace(SLASH, "/"))
"""Makes a parameter of a path what was sent, before it is read as whatever it is."""
