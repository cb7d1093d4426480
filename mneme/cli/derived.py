"""Options of a command, derived from the fields of a Pydantic model or an operation's parameters.

Typer only parses. The help shows ranges and choices, and the model checks them, so that the command line
and Python give the same error.
"""

import inspect
import json
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from mneme.cli.options import Agents, Json, Names, Team, User, Yes
from mneme.core.errors import BadInput, NotFound

if TYPE_CHECKING:  # slow to import
    from pydantic import BaseModel

    from mneme.api.operation import Operation

Schema = dict[str, Any]
Values = dict[str, Any]
OPTION_TYPES: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
VALUE_NAMES = {"path": "path", "date": "day", "date-time": "time"}
"""Names of values in the help, by a schema's format; else the type's."""
AGENTS_OPTION, CALL_CONTEXT = "agents", "command_line"
LETTERS = {"experts": "-e", "limit": "-n", "shots": "-k", "user": "-u"}
VARIABLES = {"--agents": "MNEME_AGENTS", "--team": "MNEME_TEAM", "--user": "MNEME_USER"}
OWNER_TYPES = {"user": User, "team": Team}
DECLARED_FILE = Path(__file__).with_name("declared.json")
"""The parameters of the operations that commands call, as `docs/generate/declared.py` writes them.

So help and parsing of such a command need not import the declaring module, which takes a second.
"""
UNTOLD_MAXIMUM = 2**53 - 1
"""Upper bound that no help shows; equal to `MAX_INT`, which is slow to import."""
SHOWN_CHARS = 80
"""Maximum characters shown of a refused value."""


class Fields:
    """A model's fields as the options of a command, and the values given for them."""

    def __init__(
        self,
        model: "type[BaseModel] | Callable[[], type[BaseModel]]",
        names: Names | None = None,
        without: str = "",
        known: dict[str, Schema] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """Take a model or, if its properties are `known` already, a function that returns it."""
        self._given, self._known, self._whole = model, known, whole
        self._names, self._without = names or {}, {*without.split()}

    @cached_property
    def model(self) -> "type[BaseModel]":
        found: type[BaseModel] = self._given if inspect.isclass(self._given) else self._given()  # type: ignore[assignment]
        return found

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """The JSON schema of every field that is an option, by the field's alias where it has one."""
        properties = self._known or self.model.model_json_schema().get("properties", {})
        return {name: each for name, each in properties.items() if name not in self._without}

    @cached_property
    def roles(self) -> list[str]:
        """The fields of a graph's context that say who answers as a role."""
        if self._known is not None:
            return []  # an operation has no roles, and the import would slow the most frequent commands
        from mneme.nodes.context import RESPONDER  # slow to import

        roles = [name for name in self.schemas if name != AGENTS_OPTION]
        return [each for each in roles if self.schemas[each].get("description", "").endswith(RESPONDER)]

    @property
    def parameters(self) -> list[Parameter]:
        """The fields as parameters of a function for Typer."""
        made = [self._parameter(name, schema) for name, schema in self.schemas.items()]
        if self.roles:
            made.append(Parameter(AGENTS_OPTION, Parameter.KEYWORD_ONLY, default="auto", annotation=Agents))
        return made

    def declared(self, name: str) -> list[str]:
        """Return the name of a field on the command line: an argument by its name alone."""
        if name in self._names:
            return self._names[name].split()
        schema = self.schemas[name]
        if "default" not in schema and name not in self.roles:
            return [name]
        option = option_of(name, schema)
        if schema.get("default") is True:  # else it could not be switched off
            option += option.replace("--", "/--no-", 1)
        return [option, *filter(None, [LETTERS.get(name)])]

    def _parameter(self, name: str, schema: Schema) -> Parameter:
        item, declared = _item(schema), self.declared(name)
        parsed = OPTION_TYPES[item["type"]]
        is_role = name in self.roles
        default = "" if is_role else schema.get("default", ...)
        kind = VALUE_NAMES.get(item.get("format", ""), parsed.__name__)
        if not declared[0].startswith("-"):
            made = typer.Argument(default, help=_help(schema))
        else:
            # Typer would split the variable of a repeatable option at spaces
            variable = None if "items" in _given(schema) else VARIABLES.get(declared[0])
            made = typer.Option(
                default,
                *declared,
                help=_help(schema, is_role),
                envvar=schema.get("variable") or variable,
                metavar=None if parsed is bool else f"<{kind}>",
                autocompletion=_choices(schema),
            )
        annotation = GenericAlias(list, (parsed,)) if "items" in _given(schema) else parsed
        return Parameter(name, Parameter.KEYWORD_ONLY, default=made, annotation=annotation)

    def values(self, given: Values, command: str) -> Any:
        """Return the checked values of the fields that are options; or the model, for `whole`.

        Raises BadInput, naming the option.
        """
        from pydantic import ValidationError  # slow to import

        values = {name: given[name] for name in self.schemas}
        if self.roles:
            values |= {name: values[name] or given[AGENTS_OPTION] for name in self.roles}
        try:  # an empty list is a repeatable option that was not given: the field's default counts
            found = self.model.model_validate({name: each for name, each in values.items() if each != []})
        except ValidationError as error:
            first = error.errors()[0]  # one line of error; the next run names the next
            option = self.declared(str(first["loc"][0]))[0].partition("/")[0]
            told, value = first["msg"].removeprefix("Value error, "), str(first["input"]) or "“”"
            shown = value if len(value) <= SHOWN_CHARS else f"{value[:SHOWN_CHARS]}…"
            wrong = f"{option} {shown}: {told}."
            raise BadInput(wrong, f"See `{command} --help`.") from error
        if self._whole:
            return found
        plain = found.model_dump(by_alias=True)
        for name, each in plain.items():  # a time without a zone is of the clock that the person sees
            if isinstance(each, datetime) and each.tzinfo is None:
                plain[name] = each.astimezone()
        return {name: plain[name] for name in self.schemas}


class Command:
    """A Typer function that wraps a coroutine or function and derives the options from its parameters.

    Where a parameter is annotated with `Fields`, each field of the model is an option. One annotated with a
    text is an argument, if it has no default, or an option; the text is its help. A second text has the
    option's names if they differ from the parameter's.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        prints_json: bool = True,
        asks: bool = False,
        looks: Callable[..., Any] | None = None,
    ) -> None:
        """Take a function; with `asks` a person confirms before the call, but after `looks`."""
        self._function, self._fields, self._asks, self._looks = function, dict[str, Fields](), asks, looks
        parameters, declared = list[Parameter](), list[Parameter]()
        hints = get_type_hints(function, include_extras=True)
        for each in inspect.signature(function).parameters.values():
            hint = hints[each.name]
            about = getattr(hint, "__metadata__", ())
            if about and isinstance(about[0], Fields):
                self._fields[each.name] = about[0]
                declared += about[0].parameters
            elif about and isinstance(about[0], str):
                parameters.append(_described(each, hint.__origin__, *about))
            else:
                parameters.append(each.replace(annotation=hint))
        self._own = {each.name for each in parameters}
        more = {"yes": (asks, Yes), "as_json": (prints_json, Json)}
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=kind)
            for name, (is_wanted, kind) in more.items()
            if is_wanted
        ]
        shared.append(Parameter(CALL_CONTEXT, Parameter.KEYWORD_ONLY, annotation=typer.Context))
        every = [*parameters, *declared, *shared]
        # by name, since `agents` can be a parameter and come with the roles; keyword-only, since a required
        # option may then follow one with a default
        found = {each.name: each.replace(kind=Parameter.KEYWORD_ONLY) for each in every}
        self.__signature__ = Signature(list(found.values()))  # Typer takes names and defaults from here
        self.__annotations__ = {name: each.annotation for name, each in found.items()}  # and types from here

    def __call__(self, **given: Any) -> None:
        from mneme.cli.show import confirmed, printing  # what prints is slow to import

        path = given.pop(CALL_CONTEXT).command_path
        own = {name: each for name, each in given.items() if name in self._own}
        models = {name: fields.values(given, path) for name, fields in self._fields.items()}
        with printing(given.get("as_json", False)):
            # what is not there is said before anybody is asked: the call itself refuses it
            is_there = _done(self._looks(**own, **models)) if self._looks else True
            if self._asks and is_there and not confirmed(given["yes"]):
                return
            done = _done(self._function(**own, **models))
        raise typer.Exit(done or 0)


def _done(work: Any) -> Any:
    """Return the result of a function, or of the coroutine that it returned."""
    if not inspect.iscoroutine(work):
        return work
    import asyncio  # `--help` needs none

    with asyncio.Runner() as runner:
        # Python calls a handler only between two bytecodes: a signal that comes after the last one before
        # select() would be heard when the loop next wakes. For a handler of its own the loop sets the wake-up
        # descriptor, to which every signal writes at once; the handler that Runner.run installs still acts.
        if (before := signal.getsignal(signal.SIGINT)) is signal.default_int_handler:
            with suppress(RuntimeError):  # in another thread; on Windows, where the loop does so by itself
                runner.get_loop().add_signal_handler(signal.SIGINT, lambda: None)
                signal.signal(signal.SIGINT, before)
        try:
            return runner.run(work)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except (SystemExit, BrokenPipeError):  # nobody reads: say nothing of open streams
            runner.get_loop().set_exception_handler(lambda *_: None)
            raise


def _described(parameter: Parameter, kind: type, helped: str, names: str = "") -> Parameter:
    """Return a parameter with its argument or option for Typer."""
    default = ... if parameter.default is Parameter.empty else parameter.default
    option = f"--{parameter.name.replace('_', '-')}"
    declared = names.split() or [
        f"{option}{option.replace('--', '/--no-', 1)}" if default is True else option
    ]
    is_argument = default is ... and not names
    made = (
        typer.Argument(default, help=helped) if is_argument else typer.Option(default, *declared, help=helped)
    )
    return parameter.replace(annotation=kind, default=made)


def call(
    calls: str,
    *,
    names: Names | None = None,
    without: str = "",
    defaults: Values | None = None,
    shows: str = "show:print_rows",
    told: str = "",
    called: str = "",
    fails: str = "",
    versions: str = "",
    looks: str = "",
    asks: str = "",
    searching: bool = False,
) -> Command:
    """Return a command that calls an operation and prints what it returns.

    `names` gives the option's name of a parameter if the two differ, `without` the parameters that are not
    options, and `defaults` other defaults. `shows`, a `module:name`, prints the result; `told` computes what
    is printed from the result and the arguments; `called` is the result's name in JSON if it is no object;
    `fails` says whether a result is a failure; `versions` is the command that lists versions; `searching`
    says whether vectors are searched. A person confirms an erasure after `looks`, an operation of the same
    class, has found the record, and `asks` says whether anything in it is to be erased.
    """
    declared = json.loads(DECLARED_FILE.read_text(encoding="utf-8"))[calls]
    owner = OWNER_TYPES[declared["owner"]]
    for name, default in (defaults or {}).items():
        declared["parameters"][name]["default"] = default
    fields = Fields(lambda: arguments_of(operation_of(calls)), names, without, declared["parameters"])

    async def run(
        given: Annotated[Values, fields],
        whose: owner = "local",  # type: ignore[valid-type]
    ) -> int:
        from mneme.cli.show import print_result  # what prints is slow to import

        try:
            result = await _called(operation_of(calls), given, {declared["owner"]: whose}, searching)
        except NotFound as error:  # of the record the operation says where to look; of a version it cannot
            error.hint = error.hint or (versions and f"`{versions.format(**given)}` lists the versions.")
            raise
        print_result(named(told)(result, given) if told else result, named(shows), called)
        return int(bool(fails) and named(fails)(result))

    async def look(given: Values, whose: str = "local") -> bool:
        look_up = operation_of(calls).kind.OFFERED[looks]
        found = await _called(look_up, {n: given[n] for n in look_up.parameters}, {declared["owner"]: whose})
        return not asks or bool(named(asks)(found, given))

    return Command(run, asks=declared["erases"], looks=look if looks else None)


async def _called(
    operation: "Operation", given: Values, owner: dict[str, str], searching: bool = False
) -> Any:
    """Return an operation's result; warn of unknown teams, for a change only once it is done."""
    from mneme.cli.show import console  # what prints is slow to import
    from mneme.client.home import absent_teams, opened, operations_at, warn
    from mneme.core.settings import settings

    (whose,), reads = owner.values(), operation.is_reading  # a change makes the team that is not there yet
    async with opened(reading=reads, searching=searching) as place:
        on = operations_at(place, operation.kind, whose)
        absent = await absent_teams(place, given | owner, reads=reads)
        warn(absent if reads else ())
        result = await getattr(on, operation.name)(**given)
        is_keyless = not settings().key.get_secret_value()  # a key says who calls, whatever --user says
        if result == [] and hasattr(on, "users") and is_keyless and whose not in (known := await on.users()):
            others = f"; of others: {', '.join(known)}" if known else ""
            console.print(f"Nothing is kept of {whose}{others}.")
    warn(() if reads else absent)
    return result


def named(where: str, package: str = "mneme.cli") -> Any:
    """Return the object that `module:name` names in a package."""
    module, _, name = where.partition(":")
    return getattr(import_module(f"{package}.{module}"), name)


def operation_of(calls: str) -> "Operation":
    """Return the operation that `module:Class.name` names in `mneme.api`."""
    place, _, name = calls.rpartition(".")
    found: Operation = named(place, "mneme.api").OFFERED[name]
    return found


def arguments_of(operation: "Operation") -> "type[BaseModel]":
    """Return an operation's parameters as a model."""
    from pydantic import ConfigDict, create_model  # slow to import

    config, fields = ConfigDict(frozen=True), dict[str, Any](operation.fields)
    made: type[BaseModel] = create_model(operation.name, __config__=config, **fields)
    return made


def option_of(name: str, schema: Schema) -> str:
    """Return a field's option; a list's option has the name of one item."""
    if "items" in _given(schema):
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return "--" + str(schema.get("option", name)).replace("_", "-")


def _given(schema: Schema) -> Schema:
    """Return the schema of an optional field without None."""
    return next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)


def _item(schema: Schema) -> Schema:
    """Return the schema of one value, of a list's items too."""
    given = _given(schema)
    item: Schema = given.get("items", given)
    return item


def _choices(schema: Schema) -> Callable[[str], list[str]] | None:
    """Return the shell completion of a value with a fixed set of choices."""
    named = sorted(map(str, _item(schema).get("enum", ())))
    return (lambda incomplete: [each for each in named if each.startswith(incomplete)]) if named else None


def _help(schema: Schema, is_role: bool = False) -> str:
    """Return the description with the allowed values, or of a role with what answers by default."""
    item, said = _item(schema), [schema["description"]]
    if is_role:
        from mneme.nodes.context import RESPONDER  # slow to import

        said = [f"{said[0].removesuffix(RESPONDER).strip(' .')}; default: --agents."]
    elif "enum" in item:
        said.append(f"One of: {' | '.join(map(str, item['enum']))}.")
    elif (least := item.get("minimum")) is not None:
        most = item.get("maximum", UNTOLD_MAXIMUM)
        said.append(f"{least} to {most}." if most < UNTOLD_MAXIMUM else f"{least} or more." if least else "")
    elif schema.get("examples") and item["type"] == "string" and not schema.get("default"):
        example = next(filter(None, schema["examples"]))
        said.append(f"E.g. {example[0] if isinstance(example, list) else example}".rstrip(".") + ".")
    if "items" in _given(schema):
        said.append("Repeatable.")
    return " ".join(filter(None, said))
