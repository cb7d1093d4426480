"""Say words that nobody else says, forget them, and look for their bytes in every file.

Each user tells one word in a conversation and asks for it in another, by rules. A word is looked for in all
files of the data folder, where the server's own files are too: before it was forgotten and after, through
a running server, and without one when the server has ended.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from pydantic import BaseModel, Field

from mneme.core.errors import MnemeError
from mneme.evals.commands import mneme, quiet
from mneme.evals.langgraph_server import langgraph_dev
from mneme.evals.options import RUNS, Out, Positive
from mneme.evals.reliability.routes import RULES, remembered
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table

WORDS = ("Zanzibarrow", "Quillemere", "Ostrawick", "Brackenholt", "Talmeryn", "Uxborough", "Feldspring")
WAYS = ("a server runs", "the server has ended")


class Options(BaseModel):
    """How many words are told for each way to forget them, and where results go."""

    words: Positive = Field(3, le=len(WORDS) // 2, description="Words to forget in each way.")
    out: Out = RUNS


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Tell the words, forget them in both ways, and report in how many files they were and are."""
    journal = open_journal(options.out, "erasing", {"words": options.words}, fresh=True)
    words = WORDS[: 2 * options.words]
    with TemporaryDirectory(prefix="mneme-erasing-") as folder:
        home = Path(folder)
        environment = quiet(home)
        with langgraph_dev(home, environment) as server:
            async with get_client(url=server.url) as client:
                for word in words:
                    await _tell(client, word)
            for word in words[::2]:
                journal.add(word, await _forgotten(home, environment, word, WAYS[0]))
                progress(len(journal.rows), len(words), word)
        for word in words[1::2]:
            journal.add(word, await _forgotten(home, environment, word, WAYS[1]))
            progress(len(journal.rows), len(words), word)
        came_back = [word for word in words if _holding(home, word)]
    return report(journal.rows, journal, came_back)


async def _tell(client: LangGraphClient, word: str) -> None:
    """Let a user, named as the word, tell it and ask for it."""
    await _say(client, word.lower(), f"My sister Emily lives in {word}.")
    await remembered(client, word.lower())
    reply = await _say(client, word.lower(), "Where does my sister Emily live?")
    if word not in reply:
        raise MnemeError(f"The chatbot does not say {word} again.")


async def _say(client: LangGraphClient, user: str, text: str) -> str:
    given: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    state: Any = await client.runs.wait(None, "chatbot", input=given, context={"user": user, **RULES})
    return str(state["messages"][-1]["content"])


async def _forgotten(home: Path, environment: Mapping[str, str], word: str, way: str) -> Row:
    """Forget a word by the command line, and count the files that hold it, before and after."""
    before = await asyncio.to_thread(_holding, home, word)
    (memory,) = await _mneme(environment, "memories", "list", "--user", word.lower())
    (erased,) = await _mneme(
        environment, "memories", "forget", memory["key"], "--user", word.lower(), "--yes"
    )
    after = await asyncio.to_thread(_holding, home, word)
    return {"way": way, "before": before, "after": after, "turns": erased["turns"]}


async def _mneme(environment: Mapping[str, str], *words: str) -> list[dict[str, Any]]:
    done = await asyncio.to_thread(mneme, environment, *words, "--json")
    if done.returncode:
        raise MnemeError(f"mneme {' '.join(words)} failed: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _holding(folder: Path, word: str) -> list[str]:
    """Return the files below a folder that have a word in them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if word.encode() in path.read_bytes()]


def report(rows: Sequence[Row], journal: Journal, came_back: Sequence[str]) -> Report:
    """Count the words that were in files, and those that are."""
    cells = [
        [
            way,
            len(of_way),
            sum(len(row["before"]) for row in of_way),
            sum(len(row["after"]) for row in of_way),
        ]
        for way in WAYS
        for of_way in [[row for row in rows if row["way"] == way]]
    ]
    summary: Row = {
        "words": len(rows),
        "files before": sum(len(row["before"]) for row in rows),
        "files after": sum(len(row["after"]) for row in rows),
        "came back": list(came_back),
    }
    notes = [f"{len(came_back)} of the words are in a file at the end, after the server has ended."]
    columns = ["forgotten while", "words", "files that held one", "files that hold one"]
    tables = [table("Words that were forgotten, in the bytes of all files", columns, cells)]
    return Report("erasing", "rules", journal.path, list(rows), summary, tables, notes=notes)
