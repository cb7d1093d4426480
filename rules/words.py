"""Lists of words."""


def words_in(text: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text.split())
