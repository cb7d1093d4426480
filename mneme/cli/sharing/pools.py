"""`mneme share pool …`: list, search, show, import and export shared pairs."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from mneme.api.pools import Pools
from mneme.api.rendering import row_of
from mneme.cli.options import Limit, Team, ToFile
from mneme.cli.show import console, emit, is_written, print_result, read_file, say
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.library import PAIRS
from mneme.library.agents.agent import AGENTS, DOMAINS, Agent, load_agent
from mneme.library.agents.own import agent_text
from mneme.library.agents.rubric import SINGLE_POOL
from mneme.nodes.sharing.pools import agent_of
from mneme.stores.pools.memory_pool import Added, Pair, Pooled

LINES_HINT = "Give a file of JSON Lines."
LINES_PER_REQUEST = 100
"""Lines per request to a server."""
PAIRS_PER_REQUEST = 500
CHOSEN_BY_HAND = 100
"""The score of a pair without one: a person chose it by hand (§3.2)."""


PoolName = Annotated[str, typer.Option("--pool", help="The pool: a domain, or single_pool.")]
PairKey = Annotated[str, typer.Argument(help="A pair's key, or its first letters.")]


async def list_(
    pool: PoolName = "",
    agent: Annotated[str, "Only pairs of this agent."] = "",
    team: Team = "local",
    limit: Limit = 100,
) -> None:
    """List the pools, or the pairs of one."""
    async with open_operations(Pools, team, reading=True) as shared:
        if pool:
            print_result(await shared.pairs(pool, agent, limit))
            return
        if not (found := await shared.list()):
            console.print("[dim]no pool yet: `mneme share pool import --shipped` imports examples[/]")
            return
    print_result(found)


async def show(key: PairKey, pool: PoolName, team: Team = "local") -> None:
    """Show a pair with its earlier turns and its history."""
    async with open_operations(Pools, team, reading=True) as shared:
        found = await shared.pair(pool, key)
        history = await shared.history(pool, found.key)
    emit(found.model_dump() | {"history": [each.model_dump(mode="json") for each in history]})
    pair = found.pair
    say(
        f"[bold]{found.key}[/] {pair.agent} ({pair.domain}), {_scored(pair)}, examples by "
        f"{f'retriever {pair.retriever}' if pair.retriever else 'the untrained embedder, or none'}"
    )
    for turn in pair.leading:
        say(f"  [dim]{escape(turn)}[/]")
    say(f"  [cyan]{escape(pair.prompt or '(no question)')}[/]\n{escape(pair.answer)}")
    for row in map(row_of, history):
        say(f"[dim]{row['when']} {row['who']}: {escape(str(row['why']))}[/]")


def _scored(pair: Pair) -> str:
    """Return a pair's score, its scorer, and its value after people's ratings."""
    rubric = f"version {pair.rubric} of the rubric" if pair.rubric else "the shipped rubric"
    by = {
        "": "",
        "criteria": f" by {rubric}",
        "printed": f" in one number, by {rubric} as printed (A.1)",
        "hand": ", chosen by hand",
    }[pair.scoring]
    if pair.judged is None:
        return f"{pair.score} of 100{by}"
    return f"{pair.judged} of 100{by}; {pair.score} with {pair.ups} up, {pair.downs} down"


def print_rated(rated: Pooled) -> None:
    """Print a pair's score with people's ratings."""
    pair, thumbs = rated.pair, f"{rated.pair.ups} up, {rated.pair.downs} down"
    told = " It is shown to no agent any more." if pair.is_rated_down else ""
    console.print(f"{rated.key[:8]}: {pair.judged} by its scorer, {pair.score} with {thumbs}.{told}")


def print_removed(key: str) -> None:
    """Print that a pair is no longer shown."""
    console.print(f"{key} is removed; its history is kept.")


def print_forgotten(key: str) -> None:
    """Print that a pair was erased."""
    console.print(f"{key} is erased.")


async def export(
    pool: PoolName,
    file: ToFile = Path("-"),
    team: Team = "local",
) -> None:
    """Write a pool as JSON Lines."""
    lines = list[str]()
    async with open_operations(Pools, team, reading=True) as shared:
        while page := await shared.export_lines(pool, len(lines), PAIRS_PER_REQUEST):
            lines += page
    text = "".join(f"{line}\n" for line in lines)
    if is_written(text, file):
        emit({"exported": len(lines)})
        console.print(f"{len(lines)} pairs in {file}.")


async def import_(
    file: Annotated[Path | None, typer.Argument(help="JSON Lines; `-` reads stdin.")] = None,
    pool: PoolName = "",
    agent: Annotated[str, "The agent of lines that name none: its name or YAML file."] = "",
    shipped: Annotated[bool, "Import the pairs that come with Mneme."] = False,
    team: Team = "local",
) -> int:
    """Import pairs; a broken line is reported, and the others are imported."""
    if (file is None) == (not shipped):
        raise BadInput(
            "The pairs are missing.",
            f"Give a file, or --shipped for the pairs that come with Mneme. {PAIRS_FORM}",
        )
    if file is not None:
        sources = [(pool, _lines(file, agent))]
    else:  # the shipped pairs: all of them, or those of one agent or pool
        members = [load_agent(each) for each in AGENTS if agent in {"", each}]
        members = [each for each in members if pool in {"", SINGLE_POOL, each.domain}]
        if not members:
            raise BadInput("No shipped agent matches.", f"Agents: {', '.join(AGENTS)}.")
        sources = [(pool or each.domain, _lines(PAIRS / f"{each.name}.jsonl", each.name)) for each in members]
    if not all(name for name, _ in sources):
        raise BadInput("The pool is missing.", f"Give --pool NAME, for example --pool {next(iter(DOMAINS))}.")
    done = Added()
    async with open_operations(Pools, team) as shared:
        for name, lines in sources:
            for start in range(0, len(lines), LINES_PER_REQUEST):
                more = await shared.import_lines(name, lines[start : start + LINES_PER_REQUEST], start + 1)
                done.added, done.known = done.added + more.added, done.known + more.known
                done.broken += more.broken
    emit(done)
    console.print(f"{done.added} added, {done.known} there before, {len(done.broken)} broken.")
    for line in done.broken:
        say(f"[red]{escape(line)}[/]")
    if done.broken:
        say(escape(PAIRS_FORM))
    return int(bool(done.broken))


def _lines(file: Path, agent: str) -> list[str]:
    """Return a file's lines in the form of `export`; lines that name no agent get the given one."""
    whose = agent_of(agent_text(agent)) if agent else None
    return [_as_pair(line, whose) for line in read_file(file, LINES_HINT).split("\n")]


def _as_pair(line: str, agent: Agent | None) -> str:
    """Turn a line of question and answer into a pair of the agent that it names, or of the given one."""
    try:
        row = json.loads(line)
    except ValueError:
        return line  # the import names the line and its fault
    if isinstance(row, dict) and "messages" in row:
        row = _from_chat(row)
    if not isinstance(row, dict) or "question" not in row:
        return line
    pair = {"prompt": row["question"], "leading": row.get("leading", [])}
    pair |= {"answer": row["answer"]} if row.get("answer") is not None else {}
    pair |= {"score": row["score"]} if "score" in row else {"score": CHOSEN_BY_HAND, "scoring": "hand"}
    named = row.get("agent") or (agent.name if agent else None)
    known = agent if agent and agent.name == named else load_agent(named) if named in AGENTS else None
    domain = row.get("domain") or (known.domain if known else None)
    whose = {name: value for name, value in (("agent", named), ("domain", domain)) if value is not None}
    return json.dumps(pair | whose, ensure_ascii=False)


def _from_chat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line of chat messages as question, answer and earlier turns; any other line unchanged."""
    said = list[tuple[str, str]]()
    try:
        for each in row["messages"]:
            text = each["content"]  # a text, or parts of it, as OpenAI's API has it
            parts = [{"text": text}] if isinstance(text, str) else text
            said.append((str(each["role"]), "".join(str(part["text"]) for part in parts)))
    except (KeyError, TypeError):
        return row
    turns = [(role, text) for role, text in said if role in {"user", "assistant"}]
    if [role for role, _ in turns[-2:]] != ["user", "assistant"]:
        return row
    leading = [f"{role}: {text}" for role, text in turns[:-2]]
    rest = {name: value for name, value in row.items() if name != "messages"}
    return rest | {"question": turns[-2][1], "answer": turns[-1][1], "leading": leading}


PAIRS_FORM = (
    'Each line is like {"question": "…", "answer": "…"} or like '
    '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}, '
    "whose last two messages are of user and assistant, with --agent NAME; or as `mneme share pool export` "
    "writes it."
)
