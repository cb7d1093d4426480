"""The command line from its own tree of commands, the library from its docstrings, the settings."""

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from mkdocs.exceptions import PluginError
from pydantic import SecretStr, TypeAdapter
from tables import bounds, code, kind, table

import mneme
from mneme.cli.main import app
from mneme.client.memory import OPERATIONS
from mneme.core.settings import Settings

Command = Any
"""A command or group of typer's own tree, whose types are typer's own."""
OPTION_COLUMNS = ("argument or option", "type", "default", "variable", "what it does")
COMMANDS = """\
`mneme --help` and `mneme COMMAND --help` print the same. An option with a variable takes its default from
there. The exit status is 0, or 1 with one line that says what is wrong and a hint; with `--json` that line is
JSON, too.

"""
LIBRARY = """\
`import mneme` has these names; nothing heavy is loaded before it is used. [How to give an app a
memory](../how-to/langgraph-app.md) shows them in use.

"""
SETTINGS = """\
A setting is read from the environment, or from the file `.env` of the folder where a command or the server
is started. `.env.example` has them all; a setting that is not there has its default.

"""
OTHERS = """\
## Of others

`LANGSMITH_TRACING`, `LANGSMITH_API_KEY` and `LANGSMITH_PROJECT` turn
[tracing](../how-to/studio-and-tracing.md#trace-with-langsmith) on. `MNEME_TRACEBACK=1` shows where an
unexpected error comes from.
"""


def command_line() -> str:
    """Write every command with its arguments, options, defaults and environment variables."""
    root = typer.main.get_command(app)
    return COMMANDS + _options(root) + "".join(_written(root, ("mneme",)))


def _written(group: Command, words: tuple[str, ...]) -> Iterator[str]:
    shown = [(name, _made(group, name)) for name, each in group.commands.items() if not each.hidden]
    for name, command in sorted(shown, key=lambda each: (hasattr(each[1], "commands"), each[0])):
        path = (*words, name)
        if not command.help:
            raise PluginError(f"{' '.join(path)} has no help.")
        yield f"{'#' * len(path)} `{' '.join(path)}`\n\n{inspect.cleandoc(command.help)}\n\n"
        yield _options(command)
        if hasattr(command, "commands"):
            yield from _written(command, path)


def _made(group: Command, name: str) -> Command:
    """Return a command with its options, which are made when the command is asked for."""
    if group.name == "eval":  # an evaluation's own help has its options; some need what is not installed
        return group.commands[name]
    return group.resolve_command(None, [name])[1]


def _options(command: Command) -> str:
    rows = [_option(each) for each in command.params if not each.hidden]
    return table(OPTION_COLUMNS, rows) if rows else ""


def _option(option: Command) -> tuple[str, ...]:
    names = [*option.opts, *option.secondary_opts]
    if option.param_type_name == "argument":
        names = [option.name.upper()]
    default = "required" if option.required else _default(option.default)
    variable = code(option.envvar) if isinstance(option.envvar, str) else ""
    return ", ".join(map(code, names)), _type(option), default, variable, option.help or ""


def _default(value: Any) -> str:
    if callable(value) or value in (None, "", (), [], False):
        return ""
    return code(str(value.value if isinstance(value, Enum) else value))


def _type(option: Command) -> str:
    if getattr(option, "is_bool_flag", False):
        return ""
    limits = {"minimum": option.min, "maximum": option.max}
    schema = TypeAdapter(option.type_descriptor.annotation).json_schema()
    named = kind(schema, {}).removesuffix(" or nothing")
    return " ".join(
        filter(None, (named, bounds({name: at for name, at in limits.items() if at is not None})))
    )


def library() -> str:
    """Write the public names of `mneme`, and a memory's operations. Raises PluginError without docstring."""
    names = [name for name in sorted({*mneme.__all__, "MemoryMiddleware"}) if name != "__version__"]
    return LIBRARY + "".join(map(_name, names)) + "".join(_operations(*each) for each in OPERATIONS.items())


def _name(name: str) -> str:
    found = getattr(mneme, name)
    public = [each for each, value in vars(found).items() if each[0] != "_" and inspect.isfunction(value)]
    for each, value in [(name, found), *((f"{name}.{each}", getattr(found, each)) for each in public)]:
        if not inspect.getdoc(value) or not (value is not found or found.__doc__):
            raise PluginError(f"mneme.{each} has no docstring.")
    return f"## `mneme.{name}`\n\n::: {found.__module__}.{found.__name__}\n\n"


def _operations(attribute: str, operations: Any) -> str:
    place = f"{operations.__module__}.{operations.__name__}"
    members = "".join(f"\n        - {name}" for name in sorted(operations.OFFERED))
    for name, operation in operations.OFFERED.items():
        if not operation.description:
            raise PluginError(f"{place}.{name} has no docstring.")
    return f"## `memory.{attribute}`\n\n::: {place}\n    options:\n      members:{members}\n\n"


def environment() -> str:
    """Write the settings of a process, and the defaults of options that come from the environment."""
    rows = []
    schema = Settings.model_json_schema()
    for name, field in Settings.model_fields.items():
        about = schema["properties"][name]
        variable = code(f"MNEME_{name}".upper())
        rows.append((variable, kind(about, {}), bounds(about), _setting(field.default), about["description"]))
    settings = table(("variable", "type", "bounds", "default", "what it is"), rows)
    options = sorted(set(_from_environment(typer.main.get_command(app))))
    names = table(("variable", "what it is"), options)
    return f"{SETTINGS}{settings}## Defaults of options\n\n{names}{OTHERS}"


def _setting(default: Any) -> str:
    value = default.get_secret_value() if isinstance(default, SecretStr) else default
    is_given = isinstance(value, str | int | float | Path) and value != ""
    return code(str(value)) if is_given else ""


def _from_environment(command: Command) -> Iterator[tuple[str, str]]:
    """Yield the variables of a command's options, and of the commands below it."""
    yield from ((code(each.envvar), each.help) for each in command.params if isinstance(each.envvar, str))
    for name in getattr(command, "commands", {}):
        yield from _from_environment(_made(command, name))
