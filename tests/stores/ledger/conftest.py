"""The ledger's promises are held on each log with each index."""

import pytest


@pytest.fixture(params=["edge", "double", "team"])
def location(request: pytest.FixtureRequest) -> str:
    """Name a place on each engine: here each log is with each index."""
    return str(request.getfixturevalue(f"{request.param}_location"))
