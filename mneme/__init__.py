"""Memory for LLM agents and teams of agents, on your own machine.

`open` gives a program access to memories, `tools` and `MemoryMiddleware` give it to an agent, and
`open_checkpointer` stores the agent's conversations; `import mneme` alone loads nothing else.

>>> import mneme
>>> mneme.__version__.count(".") >= 2
True
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mneme.api.erased import Erased
    from mneme.api.inbox import ChatMessage, Remembered
    from mneme.api.memories import Written
    from mneme.client.memory import Memory, open, open_store
    from mneme.core.errors import MnemeError
    from mneme.integrations.middleware import MemoryMiddleware as MemoryMiddleware
    from mneme.integrations.tools import tools
    from mneme.stores.cards.card import Card
    from mneme.stores.checkpoints.checkpointer import open_checkpointer
    from mneme.stores.users.memory import MemoryRecord

    __version__: str

__all__ = [
    "Card",
    "ChatMessage",
    "Erased",
    "Memory",
    "MemoryMiddleware",
    "MemoryRecord",
    "MnemeError",
    "Remembered",
    "Written",
    "__version__",
    "open",
    "open_checkpointer",
    "open_store",
    "tools",
]

if Path(__file__).with_name("graphs").is_file():  # a link that git wrote as a text file
    raise ImportError(
        "This clone has no symbolic links: run `git config core.symlinks true`, then `git checkout -- mneme` "
        "(on Windows, in a terminal of an administrator or with developer mode on)."
    )

if find_spec("langchain") is None:  # else `from mneme import *` fails; the name says which extra it needs
    __all__.remove("MemoryMiddleware")

_PLACES = {
    "Card": "mneme.stores.cards.card",
    "ChatMessage": "mneme.api.inbox",
    "Erased": "mneme.api.erased",
    "Memory": "mneme.client.memory",
    "MemoryMiddleware": "mneme.integrations.middleware",
    "MemoryRecord": "mneme.stores.users.memory",
    "MnemeError": "mneme.core.errors",
    "Remembered": "mneme.api.inbox",
    "Written": "mneme.api.memories",
    "open": "mneme.client.memory",
    "open_checkpointer": "mneme.stores.checkpoints.checkpointer",
    "open_store": "mneme.client.memory",
    "tools": "mneme.integrations.tools",
}


def __getattr__(name: str) -> Any:
    """Load an export on first use: the command line imports this package, and needs little of it."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  (slow to import)

        return version("mneme-agents")
    if name not in _PLACES:
        raise AttributeError(f"module 'mneme' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PLACES})
