"""`mneme serve`, `mneme console`: the server's page in the browser; and `mneme mcp`."""

import asyncio
import logging
import os
import signal
import sys
import webbrowser
from typing import Annotated

import typer

from mneme.api.operation import CONSOLE_PATH
from mneme.cli.options import Agents, User
from mneme.cli.show import console as screen
from mneme.cli.show import emit, errors, say
from mneme.client.home import OWN_SERVER, running_server
from mneme.core.errors import needs

LOCALHOST = "127.0.0.1"
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port of the server; 0: any that is free.")]


async def mcp(
    user: User = "local",
    team: Annotated[
        str, typer.Option("--team", envvar="MNEME_TEAM", help="The team of cards and pools.")
    ] = "local",
    agents: Agents = "auto",
    tools: Annotated[str, "The tools by name, with commas, or all; not given: six for memories."] = "",
) -> None:
    """Give an MCP client memories, cards and pools, over standard input and output."""
    from mneme.integrations.mcp import serve_stdio
    from mneme.integrations.offers import MCP_TOOLS, chosen

    if sys.stdin.isatty():
        # at its end the loop would wait for the thread that reads the terminal, which nobody types at
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        say("This waits for a program that speaks MCP: `mneme connect` sets one up. Ctrl-C ends it.", errors)
    await serve_stdio(user, team, agents, chosen(tools.replace(" ", "").split(",") if tools else MCP_TOOLS))


async def serve(
    host: Annotated[str, "The address to listen at; others than this machine need MNEME_AUTH."] = LOCALHOST,
    port: Port = 2025,
    idle: Annotated[
        float, typer.Option(min=0, help="Minutes without a request after which it ends; 0: never.")
    ] = 0,
) -> None:
    """Start a server: REST, MCP, the console, and an OpenAI-compatible endpoint with a memory."""
    await _serve(host, port, idle, browser=False)


async def console(
    browser: Annotated[bool, "Open the page; else print only its address."] = True,
    port: Port = 2025,
) -> None:
    """Open the console, to look at memories in the browser and correct them. Starts a server if none runs."""
    running = await asyncio.to_thread(running_server)  # `langgraph dev`, which commands ask, before ours
    if running := running or await asyncio.to_thread(running_server, name=OWN_SERVER):
        await _show(running, browser)
    else:
        await _serve(LOCALHOST, port, 0, browser)


async def _serve(host: str, port: int, idle: float, browser: bool) -> None:
    with needs("The server", "serve"):
        from mneme.server.serving import serve

    async def ready(url: str) -> None:
        # on stderr: on stdout is the page's address alone, for a program that opens it
        say(f"MCP: {url}/mneme/mcp · chat completions: {url}/v1 · Ctrl-C ends the server.", errors)
        await _show(url, browser)

    try:
        await serve(host, port, idle, ready)
    except asyncio.CancelledError:  # Ctrl-C; of a start that it ends uvicorn would log a traceback
        logging.getLogger("uvicorn.error").disabled = True
        raise


async def _show(server: str, browser: bool) -> None:
    url = f"{server}{CONSOLE_PATH}/"
    emit({"url": url})
    say(url)
    if browser and not await asyncio.to_thread(webbrowser.open, url):
        screen.print("No browser can be opened here: open the address yourself.")
