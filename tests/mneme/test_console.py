"""The console's files as a browser gets them, and the command that opens it."""

import json
import re

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mneme.server.page import CONSOLE_FOLDER, Console
from tests.doubles.langgraph_server import Server


async def behind(_: Request) -> Response:
    return PlainTextResponse("behind")


async def ask(path: str, method: str = "GET") -> httpx.Response:
    app = Console(Starlette(routes=[Route("/{path:path}", behind)]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://mneme") as client:
        return await client.request(method, path)


async def test_every_file_the_page_names_is_there_with_a_strict_policy() -> None:
    index = await ask("/console/")
    named = re.findall(r'(?:href|src)="\./([^"]+)"', index.text)
    assert {"index.js", "index.css"} <= {*named} <= {each.name for each in CONSOLE_FOLDER.iterdir()}
    for name in named:
        answer = await ask(f"/console/{name}")
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    policy = dict(each.split(" ", 1) for each in index.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {policy[each] for each in ("connect-src", "script-src", "style-src")} == {"'self'"}
    assert len(re.findall("<script", index.text)) == 1 and "style=" not in index.text


@pytest.mark.parametrize(
    "path",
    ["/console/../page.py", "/console/%2e%2e/page.py", "/console//etc/passwd", "/console/LICENSES.txt"],
)
async def test_nothing_but_the_page_is_given_away(path: str) -> None:
    assert (await ask(path)).status_code in (200, 404)
    assert (await ask(path)).text in ("Not Found", "behind")


async def test_other_paths_and_methods_are_not_the_pages() -> None:
    assert (await ask("/consoles")).text == "behind"
    assert (await ask("/console")).headers["location"] == "console/"
    assert (await ask("/console/", "POST")).status_code == 405


@pytest.mark.long
@pytest.mark.xdist_group("server")
def test_the_command_names_the_page_of_the_running_server(server: Server) -> None:
    done = server.mneme("console", "--no-browser")
    assert (done.returncode, done.stdout) == (0, f"{server.url}/console/\n")
    assert httpx.get(f"{server.url}/console/").status_code == 200
    assert json.loads(server.mneme("console", "--no-browser", "--json").stdout)["url"] == done.stdout.strip()
