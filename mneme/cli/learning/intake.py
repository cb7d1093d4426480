"""`mneme cards intake`: open the closed book (§1) of logs, tickets and past conversations.

Each part of a text is a task of its own: what does it teach? It goes through draft, challenge, decision and
monitor as any other task does. Nothing is measured, so what comes of it is provisional and says so. A part
that has been read is not read again, so that a run that was stopped goes on with the same command.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from mneme.api.cards import Cards
from mneme.cli.chat.talk import show_notice
from mneme.cli.learning.disputes import LEARNING
from mneme.cli.learning.learn import ROLES, Given, Place, finished, solve
from mneme.cli.options import Agents, Team
from mneme.cli.show import console, read_file
from mneme.client.session import open_team
from mneme.core.errors import BadInput
from mneme.models.asking.responders import resolve

MAX_PART_CHARS = 6_000
"""Characters of one part: what a small model reads with care."""
HINT = "Give a log, tickets or a conversation as text."
QUESTION = """What does this record of past work teach that would help with other tasks? It is {name}, part
{number} of {of}. Say what the problem was, what helped, what was tried and failed, and under which condition
that holds; claim nothing that the record does not show. Where it teaches nothing, say so."""


async def intake(
    files: Annotated[list[Path], "Logs, tickets or conversations; `-` reads stdin."],
    scope: Annotated[str, "The domain that the lessons hold in."] = "",
    agents: Agents = "auto",
    team: Team = "local",
) -> None:
    """Learn from what was written before: each part is drafted, challenged and compiled into cards."""
    parts = [given for file in files for given in parts_of(file, scope)]
    context = dict.fromkeys(ROLES, agents) | {"team": team}
    await show_notice(agents)
    if await resolve(agents) == "rules":
        raise BadInput("Rules learn nothing from texts.", "Give a model that reads: --agents ollama:MODEL.")
    async with open_team(Cards, team, *LEARNING) as session:
        done = await finished(session)
        new = [each for each in parts if each.id not in done]
        for each in new:
            await solve(session, each, context)
    console.print(f"{len(new)} read, {len(parts) - len(new)} read before.")


def parts_of(file: Path, scope: str) -> list[Place]:
    """Return a file's parts as tasks. Raises BadInput for one without words."""
    text = read_file(file, HINT)
    items: list[object] = [text]
    try:
        if file.suffix == ".jsonl":
            items = [json.loads(line) for line in text.splitlines() if line.strip()]
        elif file.suffix == ".json":
            read = json.loads(text)
            items = read if isinstance(read, list) else [read]
    except json.JSONDecodeError as error:
        raise BadInput(f"This is no JSON: {error}.", "Give it as .txt where it is plain text.") from error
    said = (
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False, indent=1) for each in items
    )
    texts = [piece for each in said for piece in _pieces(each)]
    if not texts:
        raise BadInput(f"{file} has no words.", HINT)
    return [
        Given.model_validate(
            {
                "id": f"intake-{hashlib.sha256(f'{scope} {text}'.encode()).hexdigest()[:24]}",
                "task": " ".join(QUESTION.format(name=file.name, number=number, of=len(texts)).split()),
                "material": text,
                "scope": scope,
            }
        )
        for number, text in enumerate(texts, start=1)
    ]


def _pieces(text: str) -> Iterator[str]:
    """Yield as many whole lines as a part has room for; a longer line is cut."""
    gathered, size = list[str](), 0
    for whole in text.splitlines():
        for line in (whole[n : n + MAX_PART_CHARS] for n in range(0, len(whole) or 1, MAX_PART_CHARS)):
            if size + len(line) > MAX_PART_CHARS:
                yield "\n".join(gathered)
                gathered, size = [], 0
            gathered.append(line)
            size += len(line) + 1
    if "".join(gathered).strip():
        yield "\n".join(gathered)
