"""Count tokens as the model does that is to read them, where its tokenizer is known; else estimate."""

from collections.abc import Callable

from models.budget import tokens

Count = Callable[[str], int]


async def counter_of(responder: str) -> Count:
    """Return what counts the tokens of a text for a responder."""
    return tokens
