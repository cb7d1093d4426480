"""Scopes: a prefix that means one scope alone is searched by that scope, whatever is written meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.query import Condition, Where
from mneme.stores.ledger.records import Change, Namespace
from mneme.stores.ledger.scopes import Scopes

CHANGE = Change(reason="told", actor="test")


def test_a_prefix_of_one_scope_alone_is_named() -> None:
    known = Scopes(["+a\x1f", "+b\x1f", "+b\x1fc\x1f"])
    narrowed = known.narrowed(Where(("+a", "+b\x1f", "+d")))
    assert (narrowed.scopes, narrowed.whole) == (("+b\x1f", "+d"), ("+a\x1f",))
    known.add("+a\x1fb\x1f")
    known.add("+a\x1fb\x1f")
    known.add("+d\x1f")
    narrowed = known.narrowed(Where(("+a", "+d")))
    assert (narrowed.scopes, narrowed.whole) == (("+a",), ("+d\x1f",))


def test_scopes_of_sections_stand_for_conditions_where_every_record_has_a_section() -> None:
    words = ["+a\x1fon..=.", "+a\x1fon..=py.", "+a\x1fon..=sql.", "+a\x1fon.g1.=sql.", "+b\x1fon..=sql."]
    only = Condition(("world",), "in", ["", "sql"])
    asked = Where(("+a\x1fon.",), (only,), sections=("", "sql"))
    known = Scopes(words)
    assert known.narrowed(asked) == Where((), whole=(words[0], words[2], words[3]))
    loose = asked._replace(scopes=("+a\x1fon..", "+a\x1fon.g2."))
    assert known.narrowed(loose) == Where((), whole=(words[0], words[2]))
    nowhere = known.narrowed(asked._replace(sections=("go",)))
    assert (nowhere.scopes, nowhere.conditions) == (asked.scopes, (only,))
    known.add("+a\x1fon..")  # a record of an older version
    assert known.narrowed(asked) == asked


def test_a_prefix_that_no_scope_begins_with_meets_nothing() -> None:
    known = Scopes(["+a\x1f"])
    assert known.meets(Where(())) and known.meets(Where(("+b", "+a"))) and known.meets(Where((), (), ("+c",)))
    assert not known.meets(Where(("+b",)))


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    opened = await open_ledger(str(tmp_path / "ledger"), await open_embedder("bundled"))
    yield opened
    await opened.close()


async def found(ledger: Ledger, *prefix: str) -> set[Namespace]:
    return {hit.version.namespace for hit in await ledger.search(prefix, "a cat", mode="blend")}


async def test_a_namespace_that_comes_later_is_found_below_one_that_stood_alone(ledger: Ledger) -> None:
    for namespace in (("ann",), ("bob",), ("ann", "home")):
        await ledger.insert(namespace, {}, text="a cat", change=CHANGE)
        assert namespace in await found(ledger, namespace[0])
    assert await found(ledger, "ann") == {("ann",), ("ann", "home")}
    assert await found(ledger, "bob") == {("bob",)}
