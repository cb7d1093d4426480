"""Upgrading a ledger of format 1, in which only cards and users had their names escaped in namespaces.

The pools, rubrics, discussions, household episodes and task memories of the team `ann.b` are below
("teams", "ann.b", …) in format 1, and below ("teams", "ann%2Eb", …) in format 2. Each such record is
written again in its new place, with its whole history and its vector; then the old ones are removed;
then the format is noted. Where the process is killed, the next one starts over: nothing is written
twice, and nothing is removed before everything is written.

A name that `escaped` could have made (`ann%2Eb`) is taken for one that is escaped already. Where two
records meet in one place, the one that was there stays, and so does the other in its old place. The
marks of forgotten records stay where they are: they hold no key from which a new place could follow.
On a server, stop the processes of the older version first: what they write meanwhile is not moved.
"""

from collections.abc import Mapping, Sequence

from mneme.stores.ledger.deciding import last_number
from mneme.stores.ledger.engine import FORMAT, Engine, Erasing, Erasure, Payload, Where, namespace_of, scope
from mneme.stores.ledger.namespaces import escaped, is_escaped
from mneme.stores.ledger.records import (
    Namespace,
    Version,
    receipt_id,
    record_id,
    tombstone_id,
    version_id,
)
from mneme.stores.ledger.transfer import history_step

KINDS = ("pools", "rubrics", "discussions", "household", "task_memory")
"""What format 1 kept below the plain names of teams."""
AT_ONCE = 500


async def upgrade(engine: Engine) -> None:
    """Bring a ledger of an older format to the current one; close the engine where that fails."""
    try:
        if (await engine.info()).format < FORMAT:
            await _escape_teams(engine)
            await engine.mark_current()
    except BaseException:
        await engine.close()
        raise


async def _escape_teams(engine: Engine) -> None:
    heads = [head for prefix in await _unescaped(engine) for head in await _heads(engine, prefix)]
    moved: list[str] = []
    for start in range(0, len(heads), AT_ONCE):
        moved += await _copy(engine, heads[start : start + AT_ONCE])
    if moved:
        await engine.erase(lambda: _erasing(moved))


async def _unescaped(engine: Engine) -> list[Namespace]:
    """Return the namespaces ("teams", name, kind) whose names are not escaped."""
    words = await engine.scopes(Where((scope("+", ("teams",)), scope("-", ("teams",)))))
    prefixes = {namespace_of(word)[:3] for word in words}
    return sorted(each for each in prefixes if each[2:] and each[2] in KINDS and not is_escaped(each[1]))


async def _heads(engine: Engine, prefix: Namespace) -> list[Version]:
    where = Where((scope("+", prefix), scope("-", prefix)))
    return [_version(payload) for payload in await engine.scan(where, await engine.count(where))]


async def _copy(engine: Engine, heads: Sequence[Version]) -> list[str]:
    """Write records in their new places; return the ids of all points in the old ones."""
    numbered = {
        _id(head): [version_id(_id(head), n) for n in range(head.first, head.version + 1)] for head in heads
    }
    found = await engine.read([each for ids in numbered.values() for each in ids])
    histories = {root: [_version(found[each]) for each in ids] for root, ids in numbered.items()}
    new = {root: [_moved(version) for version in versions] for root, versions in histories.items()}
    roots = [_id(versions[0]) for versions in new.values()]
    there = await engine.read([each for root in roots for each in (root, tombstone_id(root))])
    free = [root for root, versions in new.items() if _is_free(versions[0], there)]
    vectors = await engine.vectors_by_ids(free)
    await engine.append([history_step(new[root], vectors.get(root)) for root in free])
    return [point for root in free for point in _points(root, histories[root])]


def _moved(version: Version) -> Version:
    first, team, *below = version.namespace
    return version.model_copy(update={"namespace": (first, escaped(team), *below)})


def _is_free(first: Version, there: Mapping[str, Payload]) -> bool:
    """Say whether a record's new place is empty, or holds this very record."""
    found, tombstone = there.get(_id(first)), there.get(tombstone_id(_id(first)))
    if found is None:
        return last_number(tombstone) < first.first
    return _version(found).created == first.created


def _points(root: str, history: Sequence[Version]) -> list[str]:
    versions = [version_id(root, version.version) for version in history]
    receipts = [receipt_id(root, each.idempotency_key) for each in history if each.idempotency_key]
    return [root, *versions, *receipts]


def _erasing(points: list[str]) -> Erasing:
    found = yield points
    return Erasure(tuple(found), ())


def _id(version: Version) -> str:
    return record_id(version.namespace, version.key)


def _version(payload: Payload) -> Version:
    return Version.model_validate_json(payload["event"])
