"""What the tests of sharing share."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mneme.core.settings import settings
from mneme.stores.pools.memory_pool import MemoryPool
from tests.doubles.retriever_pools import kept_version, opened, shipped, store


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two homes once, for tests to copy: in `taught`, what the pool in `filled` holds was learned."""
    place = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MNEME_HOME", str(place / "taught"))
        settings.cache_clear()
        asyncio.run(_prepare(place))
    settings.cache_clear()
    return place


async def _prepare(place: Path) -> None:
    async with opened(place / "taught") as pool:
        await store(pool, shipped("puzzle", "riddle", "pun"))
    shutil.copytree(place / "taught", place / "filled")
    async with opened(place / "taught") as pool:
        await kept_version(pool)


@pytest.fixture
async def pool(prepared: Path, own_home: Path) -> AsyncIterator[MemoryPool]:
    """Give a pool with the shipped jokes and verses, of which nothing has been learned."""
    shutil.copytree(prepared / "filled", own_home)
    async with opened(own_home) as filled:
        yield filled


@pytest.fixture
async def taught(prepared: Path, own_home: Path) -> AsyncIterator[MemoryPool]:
    """Give a pool with the shipped jokes and verses, and the version that learned from them."""
    shutil.copytree(prepared / "taught", own_home)
    async with opened(own_home) as learned:
        yield learned
