"""`mneme setup`: from what this machine has to a model, an embedder, settings and connected editors.

It asks before each step that changes something, does what is not done yet, and may be run again.
"""

import asyncio
import platform
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import psutil
import typer
from dotenv import set_key

from mneme.cli.connect import Editor, connect, is_connected, is_there
from mneme.cli.options import Yes
from mneme.cli.show import console, emit, from_person, say
from mneme.client.measured import measured_models
from mneme.core.errors import BadInput, MnemeError
from mneme.core.settings import settings, settings_file
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import open_embedder
from mneme.models.ollama.catalogue import Server, bearer, survey, tls

GB = 1024**3
SHARED_SHARE = 0.7
"""Share of the memory common to processor and graphics that a model may take."""
CHECK_SECONDS = 180


class Model(NamedTuple):
    """A model of Ollama's library, and its GB with a context of 16,384 tokens: weights and cache."""

    name: str
    gigabytes: float


MODELS = (
    Model("llama3.3:70b", 50),
    Model("qwen2.5:32b", 26),
    Model("qwen2.5:14b", 13),
    Model("llama3.1:8b", 8),
    Model("llama3.2:3b", 4.5),
)
"""Recommended models by memory, the largest first. We measured none of them on a GPU."""
ON_A_PROCESSOR = MODELS[-1]
"""Model without a GPU: a larger one takes minutes for a reply."""


@dataclass(frozen=True)
class Step:
    """One step of the setup; without `does` there is nothing to do, or a person must do it."""

    what: str
    does: Callable[[], Awaitable[Any]] | None = None


async def setup(
    model: Annotated[str, "The model of Ollama to use; not given: what fits this machine."] = "",
    dry_run: Annotated[bool, "Say what would be done, and do nothing."] = False,
    yes: Yes = False,
) -> None:
    """Find what this machine has, and set up model, embedder, settings and editors; safe to run again."""
    if not (yes or dry_run or sys.stdin.isatty()):
        raise BadInput(
            "Setup asks before each step, and there is no terminal to ask at.",
            "Add --yes to do every step, or --dry-run to only list them.",
        )
    memory, where = await asyncio.to_thread(_memory_for_models)
    say(f"{memory:.0f} GB for models, {where}.")
    for step in await _steps(model.strip(), memory, where):
        if step.does is None:
            console.print(step.what, markup=False)
        elif dry_run:
            say(f"Would: {step.what}")
        elif yes or await from_person(partial(typer.confirm, step.what, default=True)):
            emit({"does": step.what})  # said before: a download takes minutes
            await step.does()
    if not dry_run:
        say("Ready: `mneme chat` to talk, `mneme console` to look, `mneme doctor` to check.")


async def _steps(wanted: str, memory: float, where: str) -> list[Step]:
    steps = list[Step]()
    try:
        server = await survey(settings().ollama_url)
    except MnemeError as error:
        how = "start it: ollama serve" if shutil.which("ollama") else "get it: https://ollama.com/download"
        steps += [Step(f"{error} To have a model, {how}{WITHOUT_OLLAMA}")]
        if wanted:
            steps += [Step(f"Whether Ollama's library has {wanted} is seen once it runs: it is not chosen.")]
    else:
        say(f"Ollama {server.version} at {server.url}.")
        steps += _model_steps(server, wanted or _recommended(server, memory, where))
    steps += await _embedder_steps()
    for editor in get_args(Editor):
        if is_there(editor) and not is_connected(editor):
            what = f"connect {editor}: its agent gets the memory (mneme connect)"
            steps.append(Step(what, partial(asyncio.to_thread, connect, editor)))
    return steps


WITHOUT_OLLAMA = (
    ", then run this again; or name another provider: MNEME_AUTO=openai:NAME. Without one, rules remember "
    "what you say in your own words, and search, the console, MCP and editors work; replies, learning, "
    "discussions and shared answers are poor."
)


def _recommended(server: Server, memory: float, where: str) -> str:
    """Return an installed model that was measured fit for the chat, else one that fits in memory."""
    there = {each.name for each in server.models}
    # a measurement goes before the size of the memory: what is there, and fit, need not be replaced
    for responder, measured in measured_models().items():
        name, roles = responder.removeprefix("ollama:"), measured.roles
        chat = [each.fit for role, each in roles.items() if role.startswith("chat")]
        if name in there and chat and all(chat):
            return name
    if where == PROCESSOR:
        return ON_A_PROCESSOR.name if memory >= ON_A_PROCESSOR.gigabytes else ""
    return next((each.name for each in MODELS if each.gigabytes <= memory), "")


def _model_steps(server: Server, name: str) -> list[Step]:
    if not name:
        return [Step("No recommended model fits; name a smaller one with --model, or go on with rules.")]
    steps = list[Step]()
    if not {name, f"{name}:latest"} & {each.name for each in server.models}:
        known = "" if name in {each.name for each in MODELS} else ", if its library has a model of that name"
        steps.append(Step(f"pull {name} into Ollama{known}", lambda: _pull(name)))
    if settings().model != name:
        what = f"write MNEME_MODEL={name} into {settings_file()}"
        steps.append(Step(what, lambda: _write("MNEME_MODEL", name)))
    if f"ollama:{name}" not in measured_models():
        if find_spec("pandas"):
            what = f"test {name} for the chat's roles, for three minutes at most"
            steps.append(Step(what, lambda: _check(name)))
        else:
            steps.append(Step(f"To test {name}: pip install 'mneme-agents[evals]', then mneme eval model."))
    return steps or [Step(f"{name} is there, chosen and tested.")]


async def _embedder_steps() -> list[Step]:
    embedder = await open_embedder(settings().embedder)
    if not isinstance(embedder, Absent):
        return [Step(f"The embedder is there: {embedder.name}.")]

    async def install() -> None:
        from mneme.cli.embedder import install as installed

        is_multilingual = settings().embedder == "multilingual"
        await asyncio.to_thread(installed, "multilingual" if is_multilingual else "bundled")

    return [Step("install the embedder, by which memories are found (111 MB)", install)]


async def _pull(name: str) -> None:
    """Pull a model, with progress. Raises MnemeError."""
    from httpx import HTTPError
    from ollama import AsyncClient, ResponseError
    from rich.progress import Progress

    url = settings().ollama_url
    client = AsyncClient(url, verify=tls(url), headers=bearer())
    try:
        with Progress(console=console, transient=True) as progress:
            bars = dict[str, Any]()
            async for part in await client.pull(name, stream=True):
                what = str(part.status or "")
                if what not in bars:
                    bars[what] = progress.add_task(what, total=part.total)
                progress.update(bars[what], total=part.total, completed=part.completed or 0)
    except (ResponseError, HTTPError, OSError) as error:
        raise MnemeError(
            f"Ollama could not pull {name}: {error}.", "Look at its name, or try again."
        ) from error
    say(f"{name} is in Ollama.")


async def _write(name: str, value: str) -> None:
    """Write one setting into the settings file, and keep the others."""
    path = settings_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)  # for its owner alone: a key may be written into it
    set_key(path, name, value, quote_mode="never")
    settings.cache_clear()  # the next steps read the new value
    say(f"Written: {path}")


async def _check(name: str) -> None:
    """Ask a model the test questions of the chat's roles; the next run asks those left when time is up."""
    # a process of its own can be ended when time is up; its raw results stay, and the next run reads them
    words = [sys.executable, "-m", "mneme", "eval", "model", "--workflow", "chat"]
    words += ["--agents", f"ollama:{name}", "--out", str(settings().home / "runs")]
    process = await asyncio.create_subprocess_exec(*words)
    try:
        await asyncio.wait_for(process.wait(), CHECK_SECONDS)
    except TimeoutError:
        process.terminate()
        await process.wait()
        say("It goes on where it was: run `mneme setup` again, or mneme eval model.")


PROCESSOR = "no GPU found: on the processor"


def _memory_for_models() -> tuple[float, str]:
    """Return how many GB of memory a model may take, and of which device. Blocks."""
    total = psutil.virtual_memory().total / GB
    if sys.platform == "darwin" and platform.machine() == "arm64":  # Apple's chips have one memory for both
        return total * SHARED_SHARE, "of the memory that processor and graphics share"
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout  # noqa: S603
        cards = [float(each) / 1024 for each in told.split()]
        if cards:
            return sum(cards), f"on {len(cards)} NVIDIA GPU{'s' * (len(cards) > 1)}"
    except (OSError, ValueError, subprocess.SubprocessError):
        pass
    if amd := _amd_memory():
        return amd, "on an AMD GPU"
    return total / 2, PROCESSOR  # half is for all other programs


def _amd_memory(devices: Path = Path("/sys/class/drm")) -> float:
    """Return the GB of AMD's GPUs by the kernel's files."""
    files = devices.glob("card*/device/mem_info_vram_total")
    return sum(int(each.read_text()) for each in files) / GB
