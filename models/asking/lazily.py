"""Import what is slow when it is first needed, without holding up the event loop; rules among it."""

import asyncio
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from mneme.prompts.prompt import Prompt

G = TypeVar("G", bound=BaseModel)
A = TypeVar("A", bound=BaseModel | str)

_imported: dict[str, ModuleType] = {}


async def import_lazily(module: str) -> ModuleType:
    """Return a module; later calls neither wait nor need a thread, which others may occupy."""
    if module not in _imported:
        _imported[module] = await asyncio.to_thread(import_module, module)
    return _imported[module]


async def by_rules(prompt: "Prompt[G, A]", given: G) -> A:
    """Return the answer of the prompt's rule, off the event loop; rules are loaded only here, by name."""
    registry = await import_lazily("mneme.rules.registry")
    return cast(A, await asyncio.to_thread(registry.answer, prompt, given))
