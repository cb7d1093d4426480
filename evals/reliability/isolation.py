"""Ask every route of a server with users: without a key, with a wrong one, and as another user.

Ann has a conversation, a memory, an assistant and a schedule. Each route of the server's own description is
asked with an empty body and with what Ann has, and so are the routes of the command line. A request is let in
where it is answered without a right key, and leaks where its answer holds Ann's word.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from langgraph_sdk import get_client
from pydantic import BaseModel

from mneme.evals.commands import quiet
from mneme.evals.langgraph_server import langgraph_dev
from mneme.evals.options import RUNS, Out
from mneme.evals.reliability.routes import OPEN, WORD, WRONG_KEY, Ids, answers, belongings, is_refused
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.server.users import add_user


class Options(BaseModel):
    """Where results go."""

    out: Out = RUNS


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Start a server with two users, ask everything as each of the askers, and count what came through."""
    journal = open_journal(options.out, "isolation", {}, fresh=True)
    with TemporaryDirectory(prefix="mneme-isolation-") as folder:
        users = Path(folder) / "users.json"
        ann, bob = (add_user(users, name) for name in ("ann", "bob"))
        home = Path(folder) / "home"
        with langgraph_dev(home, quiet(home, MNEME_AUTH=str(users))) as server:
            ids = await belongings(server.url, ann)
            askers = {"nobody": "", "a wrong key": WRONG_KEY, "another user": bob}
            for number, (asker, key) in enumerate(askers.items(), 1):
                journal.add(asker, await _asked(server.url, key, ids, is_user=key == bob))
                progress(number, len(askers), asker)
            intact = await _is_there(server.url, ann, ids)
    return report(journal.rows, journal, intact=intact)


async def _asked(url: str, key: str, ids: Ids, *, is_user: bool) -> Row:
    found = await answers(url, key, ids)
    let_in = [
        ask[:2]
        for ask, status, _ in found
        if not is_user and ask[1] not in OPEN and not is_refused(ask[1], status)
    ]
    leaks = [ask[:2] for ask, _, text in found if WORD in text]
    return {"asked": len(found), "let in": let_in, "leaks": leaks}


async def _is_there(url: str, ann: str, ids: Ids) -> bool:
    """Say whether Ann still has what she said and what was remembered of it."""
    async with get_client(url=url, api_key=ann) as client:
        state = await client.threads.get_state(ids["thread_id"])
        found = (await client.store.search_items(ids["namespace"]))["items"]
    return WORD in str(state["values"]) and any(WORD in str(each) for each in found)


def report(rows: Sequence[Row], journal: Journal, *, intact: bool) -> Report:
    """Count the requests, and those that came through."""
    cells = [[row["case"], row["asked"], len(row["let in"]), len(row["leaks"])] for row in rows]
    summary: Row = {
        "asked": sum(row["asked"] for row in rows),
        "let in": sum(len(row["let in"]) for row in rows),
        "leaks": sum(len(row["leaks"]) for row in rows),
        "intact": intact,
    }
    notes = [f"What Ann has is {'as it was' if intact else 'NOT as it was'} afterwards."]
    tables = [table("Requests for what Ann has", ["by", "asked", "let in", "leaks"], cells)]
    return Report("isolation", "rules", journal.path, list(rows), summary, tables, notes=notes)
