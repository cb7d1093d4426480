"""A team that several share and that the roles no longer name takes the policies for it with it."""

import json
from pathlib import Path

import pytest

from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.client.home import OWN_SERVER
from mneme.core.settings import settings
from mneme.server.users import add_user
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.promotion import Sharing, TeamFacts, end_sharing
from tests.doubles.own_server import own_server

FACT, LATER = "Reporting uses the database PostgreSQL.", "Reporting uses the database DuckDB."
THERE = "teams: {analysts: {bob: [read, write], rob: [read, write, promote, review]}}"
GONE = "teams: {acme: {rob: [write]}}"


@pytest.mark.parametrize("share", ["always", "ask"])
async def test_a_new_team_of_an_old_name_is_told_nothing_by_an_old_policy(
    users: Path, bundled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: Sharing
) -> None:
    bob, ann, memories = SharedMemory(bundled, "bob"), SharedMemory(bundled, "ann"), Memories(bundled, "bob")

    async def start(roles: str) -> None:
        file = tmp_path / f"{len(roles)}.yaml"
        file.write_text(roles)
        monkeypatch.setenv("MNEME_ROLES", str(file))
        settings.cache_clear()
        await end_sharing(bundled)

    async def waiting() -> int:
        return len([*await TeamFacts(bundled, "analysts", "proposals").all(), *await memories.flagged()])

    await start(THERE)
    await ann.set_policy("acme", "ask", ["tea"])  # her own team of that name
    await bob.set_policy("analysts", share, ["reporting"])
    known = await memories.add(FACT)
    await start(THERE)
    assert await waiting() == 1, "the team is there"
    await start("")
    await start(THERE)
    assert await waiting() == 1, "an empty file ends nothing"
    await start(GONE)
    await start(THERE)
    assert await waiting() == 0
    await memories.update(known.key, LATER)
    assert await waiting() == 0, "a new team of that name"
    assert [each.share for each in [*await bob.policies(), *await ann.policies()]] == ["never", "ask"]
    await bob.set_policy("analysts", share, ["reporting"])
    await memories.update(known.key, FACT)
    assert await waiting() == 1, "set for the new team"


def test_a_server_ends_the_policies_for_a_team_that_is_gone(tmp_path: Path) -> None:
    users, roles, home = tmp_path / "users.json", tmp_path / "roles.yaml", tmp_path / "home"
    given = {"MNEME_AUTH": str(users), "MNEME_ROLES": str(roles), "MNEME_KEY": add_user(users, "bob")}
    roles.write_text(THERE)
    with own_server(home, **given) as server:
        server.mneme("policies", "set", "analysts", "always", "--about", "reporting")
        kept = [server.mneme("policies", "list", "--json").stdout]
    (home / "ledger" / OWN_SERVER).unlink(missing_ok=True)
    roles.write_text(GONE)
    with own_server(home, **given) as server:
        kept.append(server.mneme("policies", "list", "--json").stdout)
    assert [json.loads(each)["share"] for each in kept] == ["always", "never"]
