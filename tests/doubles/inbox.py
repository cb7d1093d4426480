"""An outcome of a message, for tests."""

from mneme.stores.users.inbox import MessageOutcome

STORED = MessageOutcome(
    route="store", rationale="a fact about the user", model="", operations=[], run_id="r", trace=""
)
