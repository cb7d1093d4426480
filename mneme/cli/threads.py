"""`mneme threads …`: what is printed of a deletion."""

from rich.markup import escape

from mneme.api.threads import Cleaned
from mneme.cli.show import say


def print_deleted(done: Cleaned) -> None:
    """Print which threads were deleted, and which files may still hold something of them."""
    say(f"deleted: {', '.join(done.threads)}")
    for each in done.left:
        say(f"- not erased: {escape(each)}")


def is_left(done: Cleaned) -> bool:
    """Return whether files may still hold something of what was deleted."""
    return bool(done.left)
