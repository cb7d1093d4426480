"""`mneme console`: the server's page in the browser; where no server runs, it starts one. And `mneme mcp`."""

import asyncio
import os
import signal
import socket
import sys
import urllib.request
import webbrowser
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from mneme.api.operation import CONSOLE_PATH
from mneme.cli.options import Agents, User
from mneme.cli.show import console as screen
from mneme.cli.show import emit, errors
from mneme.client.home import running_server
from mneme.core.errors import MnemeError, needs

ROOT = Path(__file__).parents[2]
"""A checkout has `langgraph.json` here."""
POLL, PATIENCE = 0.2, 120.0
"""Seconds between two looks whether the server answers, and in all."""


async def mcp(
    user: User = "local",
    team: Annotated[
        str, typer.Option("--team", envvar="MNEME_TEAM", help="The team of cards and pools.")
    ] = "local",
    agents: Agents = "auto",
) -> None:
    """Serve memories, cards and pools to an MCP client over standard input and output."""
    from mneme.integrations.mcp import serve_stdio

    await serve_stdio(user, team, agents)


async def console(
    browser: Annotated[bool, "Open the page; else print only its address."] = True,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="The port of the server, if one is started.")
    ] = 2024,
) -> int:
    """Open the console, to look at memories in the browser and correct them. Starts a server if none runs."""
    address = f"http://127.0.0.1:{port}"
    running = await asyncio.to_thread(running_server) or await _answering(address)
    if running:
        await _show(running, browser)
        return 0
    with socket.socket() as tried:  # the server would take another port, and not say so
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            hint = f"Choose another: mneme console --port {port % 65535 + 1}"
            raise MnemeError(f"Port {port} cannot be used: {error.strerror}.", hint) from error
    server = await _started(port)
    with suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.terminate)
    try:
        await _until_ready(server, address)
        await _show(address, browser)
        return await server.wait()
    except asyncio.CancelledError:  # Ctrl-C: the server got it, too, and closes the ledger
        await server.wait()
        raise
    finally:
        if server.returncode is None:
            server.send_signal(signal.SIGINT)
            await server.wait()


async def _show(server: str, browser: bool) -> None:
    url = f"{server}{CONSOLE_PATH}/"
    emit({"url": url})
    screen.print(url, soft_wrap=True)
    if browser and not await asyncio.to_thread(webbrowser.open, url):
        screen.print("No browser can be opened here: open the address yourself.")


async def _answering(server: str) -> str:
    """Return the server's address if it has the page, else ""."""

    def is_there() -> bool:
        try:
            with urllib.request.urlopen(f"{server}{CONSOLE_PATH}/", timeout=2) as answer:  # noqa: S310  (our own address)
                return bool(answer.status == 200)
        except OSError:
            return False

    return server if await asyncio.to_thread(is_there) else ""


async def _started(port: int) -> asyncio.subprocess.Process:
    """Start the server as `make dev` does. Raises MnemeError where this cannot be done."""
    config = ROOT / "langgraph.json"
    if not config.is_file():
        raise MnemeError(
            "No server runs, and this installation has none to start.",
            "Run `make dev` in a checkout of Mneme.",
        )
    with needs("The server", "serve"):
        if find_spec("langgraph_cli") is None:
            raise ModuleNotFoundError(name="langgraph-cli")
    errors.print("Starting the server; Ctrl-C ends it.")
    words = ["-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "64"]
    words += ["--config", str(config), "--port", str(port)]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        cwd=ROOT,
        env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
        stdout=asyncio.subprocess.DEVNULL,
    )


async def _until_ready(server: asyncio.subprocess.Process, address: str) -> None:
    for _ in range(int(PATIENCE / POLL)):
        if server.returncode is not None:
            raise MnemeError("The server ended at once.", "Run `make dev` to see why.")
        if await _answering(address):
            return
        await asyncio.sleep(POLL)
    raise MnemeError(f"The server does not answer in {PATIENCE:.0f} seconds.", "Run `make dev` to see why.")
