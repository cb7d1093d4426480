"""How a statement of a solution can fail; each failure is reported in a `Measured`."""


class Refused(Exception):
    """A statement is not allowed; the message says why."""


class Stopped(Exception):
    """A statement was stopped; the message names the limit."""


class Failed(Exception):
    """A statement failed; the message is the database's."""


class Late(Stopped):
    """A statement took all the time that it had."""
