"""The console: a page of static files at `/console/`, which gets all its data from the server's own routes.

Its source is in `clients/console/`; `make console` builds these files of it.

The files hold nobody's data, so a browser gets them without a key; the page asks for the key and sends it
with each call. Middleware answers them: the server lets no custom route be open where others need a key.
"""

from pathlib import Path

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mneme.api.operation import CONSOLE_PATH

CONSOLE_FOLDER = Path(__file__).with_name("console")
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
INDEX = "index.html"
POLICY = "; ".join([
    "default-src 'none'",
    *(f"{each} 'self'" for each in ("script-src", "style-src", "connect-src")),
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
])  # fmt: skip
"""Content security policy of the page: our own files alone, no inline scripts or styles."""


class Console:
    """Middleware that answers the page's files; everything else it passes on."""

    def __init__(self, app: ASGIApp) -> None:
        files = (each for each in CONSOLE_FOLDER.rglob("*") if each.suffix in MEDIA_TYPES)
        self._app = app
        # Read once: no path that a request names ever reaches the disk.
        self._files = {each.relative_to(CONSOLE_FOLDER).as_posix(): each.read_bytes() for each in files}
        self._headers = {
            "content-security-policy": POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cache-control": "no-cache",  # files have the same names in every version
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a file of the page, or pass the request on."""
        asked = scope["type"] == "http" and (scope["path"] + "/").startswith(f"{CONSOLE_PATH}/")
        await (self._answer(scope) if asked else self._app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return Response(status_code=405, headers={**self._headers, "allow": "GET, HEAD"})
        if scope["path"] == CONSOLE_PATH:
            return RedirectResponse("console/", headers=self._headers)
        name = scope["path"].removeprefix(f"{CONSOLE_PATH}/") or INDEX
        if name not in self._files:
            return Response("Not Found", 404, self._headers, "text/plain")
        return Response(self._files[name], 200, self._headers, MEDIA_TYPES[Path(name).suffix])
