"""`mneme share pool …`: look at what all remember, bring memories in and take them out."""

import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from agents.agent import AGENTS, DOMAINS, Agent, load_agent
from agents.rubric import SINGLE_POOL
from mneme.errors import BadInput, StorageFailure
from mneme.home import open_operations
from mneme.share import agent_text, lines_of
from mneme.sharing_operations import RetrieverState, SharingOperations
from mneme.show import console, print_json, print_table
from nodes.memory_pools import agent_of
from stores.memory_pool import Added, Pooled

AT_ONCE = 100
"""Lines that are brought in by one request to a server."""
PAGE = 500
SHIPPED = Path(__file__).parent.parent / "evals" / "data" / "memory_sharing"
VOUCHED_FOR = 100
"""The score of a pair whose score is not told: somebody chose it by hand (§3.2)."""


async def list_(team: str, pool: str, agent: str, limit: int, as_json: bool) -> None:
    """List the pools, or the pairs of one."""
    async with open_operations(SharingOperations, team) as shared:
        if pool:
            _print_pairs(await shared.pairs(pool, agent, limit), as_json)
        else:
            _print_pools(await shared.pools(), as_json)


def _print_pools(pools: Sequence[RetrieverState], as_json: bool) -> None:
    if as_json:
        for each in pools:
            print_json(each)
        return
    if not pools:
        console.print("[dim]nothing yet: `mneme share pool import --shipped` brings in examples[/]")
        return
    rows = (
        [each.pool, str(each.memories), str(each.serving), str(len(each.versions)), str(each.waiting)]
        for each in pools
    )
    print_table("", ("pool", "memories", "retriever", "versions", "to learn"), rows)


def _print_pairs(pairs: Sequence[Pooled], as_json: bool) -> None:
    if as_json:
        for each in pairs:
            print_json(each)
        return
    rows = (
        [
            each.key[:8],
            each.pair.agent,
            str(each.pair.score),
            _short(each.pair.prompt),
            _short(each.pair.answer),
        ]
        for each in pairs
    )
    print_table("", ("key", "agent", "score", "prompt", "answer"), rows) if pairs else console.print(
        "[dim]nothing[/]"
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < 60 else f"{line[:59]}…"


async def show(team: str, pool: str, key: str, as_json: bool) -> None:
    """Print a pair with its turns, and why it is there."""
    async with open_operations(SharingOperations, team) as shared:
        found = await shared.pair(pool, key)
        history = await shared.history(pool, found.key)
    if as_json:
        print_json(found.model_dump() | {"history": [each.model_dump(mode="json") for each in history]})
        return
    pair = found.pair
    console.print(
        f"[bold]{found.key}[/] {pair.agent} ({pair.domain}), {pair.score} of 100 by rubric version "
        f"{pair.rubric}, examples by retriever {pair.retriever}",
        soft_wrap=True,
    )
    for turn in pair.leading:
        console.print(f"  [dim]{escape(turn)}[/]", soft_wrap=True)
    console.print(
        f"  [cyan]{escape(pair.prompt or '(no question)')}[/]\n{escape(pair.answer)}", soft_wrap=True
    )
    for version in history:
        who = " / ".join(filter(None, (version.change.actor, version.change.model)))
        console.print(f"[dim]{version.at:%Y-%m-%d %H:%M:%S} {who}: {escape(version.change.reason)}[/]")


async def remove(team: str, pool: str, key: str, reason: str, for_good: bool, as_json: bool) -> None:
    """Take a pair out of retrieval, or erase it."""
    async with open_operations(SharingOperations, team) as shared:
        gone = await (shared.forget if for_good else shared.remove)(pool, key, reason)
    if as_json:
        print_json({"key": gone, "forgotten": for_good})
        return
    console.print(f"{gone} is {'forgotten' if for_good else 'removed; its history stays'}.")


async def export(team: str, pool: str, file: Path, as_json: bool) -> None:
    """Write a pool as JSON Lines."""
    async with open_operations(SharingOperations, team) as shared:
        lines = [line async for line in _exported(shared, pool)]
    text = "".join(f"{line}\n" for line in lines)
    if str(file) == "-":
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageFailure(f"Cannot write to {file}: {error.strerror}.", "Give another file.") from error
    print_json({"exported": len(lines)}) if as_json else console.print(f"{len(lines)} pairs in {file}.")


async def _exported(shared: SharingOperations, pool: str) -> AsyncIterator[str]:
    start = 0
    while lines := await shared.export_lines(pool, start, PAGE):
        for line in lines:
            yield line
        start += PAGE


async def import_(team: str, pool: str, file: Path | None, agent: str, shipped: bool, as_json: bool) -> int:
    """Bring pairs in; return 1 where a line was broken: it is named, and the rest is in."""
    if (file is None) == (not shipped):
        raise BadInput("Which pairs?", "Give a file, or --shipped for those that come with Mneme.")
    sources = _shipped(pool, agent) if file is None else [(pool, _lines(file, agent))]
    if not all(name for name, _ in sources):
        raise BadInput("Into which pool?", f"Give --pool, such as {next(iter(DOMAINS))}.")
    async with open_operations(SharingOperations, team) as shared:
        told = [await _import(shared, name, lines) for name, lines in sources]
    whole = Added(
        added=sum(each.added for each in told),
        known=sum(each.known for each in told),
        broken=[line for each in told for line in each.broken],
    )
    _print_added(whole, as_json)
    return int(bool(whole.broken))


def _shipped(pool: str, agent: str) -> list[tuple[str, list[str]]]:
    """Return the shipped pairs by the pool that they belong in: all of them, one agent's or one pool's."""
    members = [load_agent(name) for name in AGENTS if agent in {"", name}]
    if pool and pool != SINGLE_POOL:
        members = [each for each in members if each.domain == pool]
    if not members:
        raise BadInput("No shipped agent is like that.", f"Agents: {', '.join(AGENTS)}.")
    return [(pool or each.domain, _lines(SHIPPED / f"{each.name}.jsonl", each.name)) for each in members]


def _lines(file: Path, agent: str) -> list[str]:
    """Return a file's lines as a pool exports them; question and answer alone are of the agent given."""
    whose = agent_of(agent_text(agent)) if agent else None
    return [_as_pair(line, whose) for line in lines_of(file)]


def _as_pair(line: str, agent: Agent | None) -> str:
    """Add to a line of question and answer whose it is: of the agent that it names, else of the one given.

    What cannot be read is told when it is brought in.
    """
    try:
        told = json.loads(line)
    except ValueError:
        return line
    if not isinstance(told, dict) or "question" not in told:
        return line
    said = {"prompt": told["question"], "answer": told.get("answer"), "leading": told.get("leading", [])}
    said["score"] = told.get("score", VOUCHED_FOR)
    return json.dumps(said | _whose(told, agent), ensure_ascii=False)


def _whose(told: dict[str, Any], given: Agent | None) -> dict[str, Any]:
    """Return the agent and the domain of a line; a shipped agent's domain is known."""
    named = told.get("agent") or (given.name if given else None)
    known = given if given and given.name == named else load_agent(named) if named in AGENTS else None
    domain = told.get("domain") or (known.domain if known else None)
    return {name: value for name, value in (("agent", named), ("domain", domain)) if value is not None}


async def _import(shared: SharingOperations, pool: str, lines: list[str]) -> Added:
    told = Added()
    for first, part in _parts(lines):
        more = await shared.import_lines(pool, part, first)
        told = Added(
            added=told.added + more.added, known=told.known + more.known, broken=told.broken + more.broken
        )
    return told


def _parts(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    for start in range(0, len(lines), AT_ONCE):
        yield start + 1, list(lines[start : start + AT_ONCE])


def _print_added(added: Added, as_json: bool) -> None:
    if as_json:
        print_json(added)
        return
    console.print(f"{added.added} added, {added.known} known already, {len(added.broken)} broken.")
    for line in added.broken:
        console.print(f"[red]{escape(line)}[/]", soft_wrap=True)
