"""Write the types of `mneme.client.blocking_memory`: the coroutines of a `Memory` as calls that block.

`python docs/generate/blocking_stub.py` writes the file, and `ruff format` formats it; a test
compares it with what this would write.
"""

import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from mneme.client.memory import OPERATIONS, Memory, OfMemories

STUB = Path(__file__).parents[2] / "mneme" / "client" / "blocking_memory.pyi"
HEAD = '''"""Written by `docs/generate/blocking_stub.py`."""
# ruff: noqa: I001

'''


def stub() -> str:
    """Return the text of the stub."""
    modules = {"builtins", "collections.abc", "typing", "mneme.client.blocking"}
    classes = [
        _class(f"Blocking{kind.__name__}", [_method(kind, name, modules) for name in kind.OFFERED])
        for kind in OPERATIONS.values()
    ]
    attributes = [f"    {name}: Blocking{kind.__name__}\n" for name, kind in OPERATIONS.items()]
    own = [name for name, each in vars(Memory).items() if isinstance(each, OfMemories)]
    methods = [_method(Memory, name, modules) for name in ("remember", *own)]
    made = "    def __init__(self, of: typing.Any, loop: mneme.client.blocking.Loop) -> None: ...\n"
    body = [made, "    user: builtins.str\n    team: builtins.str\n", *attributes, *methods]
    whole = "\n\n".join([*classes, _class("BlockingMemory", body)])
    return HEAD + "".join(f"import {each}\n" for each in sorted(modules)) + "\n" + whole


def _class(name: str, parts: list[str]) -> str:
    return f"class {name}:\n{''.join(parts)}"


def _method(kind: Any, name: str, modules: set[str]) -> str:
    function: Callable[..., Any] = inspect.unwrap(getattr(kind, name))
    hints = get_type_hints(function)
    parts, is_named = ["self"], False
    for each in [*inspect.signature(function).parameters.values()][1:]:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_named:
            parts.append("*")
            is_named = True
        default = "" if each.default is inspect.Parameter.empty else " = ..."
        parts.append(f"{each.name}: {_type(hints[each.name], modules)}{default}")
    return f"    def {name}({', '.join(parts)}) -> {_type(hints['return'], modules)}: ...\n"


def _type(hint: Any, modules: set[str]) -> str:
    """Return a type as it is written in the stub, and note the modules that it needs."""
    if hint is None or hint is type(None):
        return "None"
    if hint is Any:
        return "typing.Any"
    generic = getattr(hint, "__pydantic_generic_metadata__", {})
    origin = get_origin(hint) or generic.get("origin")
    given = get_args(hint) or generic.get("args", ())
    if origin is Annotated:
        return _type(given[0], modules)
    if origin is Literal:
        return f"typing.Literal[{', '.join(map(repr, given))}]"
    if origin in (types.UnionType, typing.Union):
        return " | ".join(_type(each, modules) for each in given)
    named = origin or hint
    modules.add(named.__module__)
    parts = f"[{', '.join(_type(each, modules) for each in given)}]" if given else ""
    return f"{named.__module__}.{named.__qualname__}{parts}"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
