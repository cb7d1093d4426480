"""How a statement of a solution can fail; each failure is reported in a `Measured`."""

from textwrap import shorten

SHOWN = 120
"""Characters of a statement that a failure quotes."""


class Refused(Exception):
    """A statement is not allowed; the message says why."""


class Stopped(Exception):
    """A statement was stopped; the message names the limit."""


class Failed(Exception):
    """A statement failed; the message is the database's."""


class Late(Stopped):
    """A statement took all the seconds that it had."""

    def __init__(self, sql: str, seconds: float) -> None:
        said = shorten(sql, SHOWN, placeholder=" …")
        super().__init__(f"Stopped, since it ran longer than {seconds:.3g} s: {said}")
