"""Why a reply cannot be used, which decides how the model is asked again."""

from typing import Any


class Unusable(Exception):  # noqa: N818  (it is what the model is told)
    """A reply that cannot be used: the reason in words for the model, and the reply itself."""

    shown_back = True
    """Whether seeing the reply and its fault can help the model."""
    verdict = "That reply cannot be used."
    again = ""

    def __init__(self, reason: str, raw: str = "") -> None:
        super().__init__(reason)
        self.raw = raw


class Doubtful(Unusable):
    """The reply holds but may lack something: asked again once, then the answer stands."""

    verdict = "Look at that reply again."
    again = "If the reply was right as it was, repeat it."

    def __init__(self, reason: str, raw: str, answer: Any) -> None:
        super().__init__(reason, raw)
        self.answer = answer


class CutShort(Unusable):
    """The reply reached its limit of tokens: more room may help."""

    shown_back = False


class Endless(Unusable):
    """The reply repeats itself, counts up or takes too long: only another draw can help, not more room."""

    shown_back = False


class Copied(Unusable):
    """The reply repeats a worked example: the example is left out of the next request."""

    shown_back = False


class Leaked(Unusable):
    """Unmarked thinking was taken for the answer: from now on this model's replies are held to their end."""

    shown_back = False
