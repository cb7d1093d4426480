"""How a statement of a solution can come to nothing; each is told in a `Measured`, none leaves the world."""


class Refused(Exception):
    """Tell why a statement is not let through."""


class Stopped(Exception):
    """Tell which limit stopped a statement."""


class Failed(Exception):
    """Tell what the database said of a statement."""
