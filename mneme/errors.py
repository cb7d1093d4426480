"""The named failures of Mneme: each says what happened and what to do about it."""


class MnemeError(RuntimeError):
    """Carry one line for the user and, where there is one, a hint that mends it.

    A `RuntimeError`, since the LangGraph server hides the messages of kinds that it does not know.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BadInput(MnemeError):
    """What the user gave cannot be used."""


class BadAnswer(MnemeError):
    """A model's reply stayed invalid after every repair; `raw` is the last reply."""

    def __init__(self, message: str, raw: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.raw = raw


class ModelUnavailable(MnemeError):
    """No model answers: the server is down, the model is absent or lacks a capability."""


class PromptTooLong(MnemeError):
    """The pinned part of a prompt does not fit the model's context."""


class NotFound(MnemeError):
    """No such user, memory, version or thread."""


class Conflict(MnemeError):
    """Somebody else wrote first: the record is not at the version that was expected."""


class LedgerInUse(MnemeError):
    """Another process owns the embedded ledger at this path."""


class LedgerMismatch(MnemeError):
    """The path holds no ledger, or one made with another embedder or format."""


class StorageFailure(MnemeError):
    """The disk or the server refused a read or a write; nothing was acknowledged."""


class Forbidden(MnemeError):
    """The caller is not who may do this."""
