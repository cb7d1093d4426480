"""Import what is slow when it is first needed, without holding up the event loop."""

import asyncio
from importlib import import_module
from types import ModuleType

_imported: dict[str, ModuleType] = {}


async def import_lazily(module: str) -> ModuleType:
    """Return a module; later calls neither wait nor need a thread, which others may occupy."""
    if module not in _imported:
        _imported[module] = await asyncio.to_thread(import_module, module)
    return _imported[module]
