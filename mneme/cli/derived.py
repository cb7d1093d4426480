"""Make the options of a command from the fields of a Pydantic model, or from an operation's parameters.

Typer only parses. The help shows ranges and choices, and the model checks them, so that the command line
and Python give the same error.
"""

import inspect
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Any, cast, get_type_hints

import typer
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from mneme.cli.options import Agents, Json, Names, Owner, Team, User, run_command
from mneme.cli.show import json_lines, print_result, print_rows
from mneme.core.errors import BadInput, NotFound

if TYPE_CHECKING:
    from mneme.api.operation import Operation, Operations

Schema = dict[str, Any]
Values = dict[str, Any]
TYPES: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
AGENTS, AS_JSON, OWNER, CONTEXT = "agents", "as_json", "whose", "command_line"
LETTERS = {"limit": "-n", "user": "-u", "shots": "-k"}
VARIABLES = {"agents": "MNEME_AGENTS", "team": "MNEME_TEAM", "user": "MNEME_USER"}
OWNERS = {"user": User, "team": Team, "--owner": Owner}
DECLARED = Path(__file__).with_name("declared.json")
"""The parameters of the operations that commands call, as `docs/generate/declared.py` writes them.

So the help and the parsing of such a command need no import of what declares it, which takes a second.
"""
LARGEST = 2**53 - 1
"""A bound of numbers that no help needs to tell; see `mneme.api.operation`."""


class Fields:
    """A model's fields as the options of a command, and what was given for them as its values."""

    def __init__(
        self,
        model: type[BaseModel] | Callable[[], type[BaseModel]],
        names: Names | None = None,
        without: str = "",
        known: dict[str, Schema] | None = None,
    ) -> None:
        """Take a model, or what returns it where its properties are `known` already."""
        self._given, self._known = model, known
        self._names, self._without = names or {}, {*without.split()}

    @cached_property
    def model(self) -> type[BaseModel]:
        return cast(type[BaseModel], self._given if inspect.isclass(self._given) else self._given())

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """The JSON schema of every field that is an option, by the field's alias where it has one."""
        properties = self._known or self.model.model_json_schema().get("properties", {})
        return {name: each for name, each in properties.items() if name not in self._without}

    @cached_property
    def roles(self) -> list[str]:
        """The fields of a graph's context that say who answers as a role."""
        if self._known is not None:
            return []
        from mneme.nodes.context import RESPONDER  # slow to import

        roles = [name for name, each in self.schemas.items() if name != AGENTS]
        return [each for each in roles if self.schemas[each].get("description", "").endswith(RESPONDER)]

    @property
    def parameters(self) -> list[Parameter]:
        """The fields as parameters of a function for Typer."""
        made = [self._parameter(name, schema) for name, schema in self.schemas.items()]
        if self.roles:
            made.append(Parameter(AGENTS, Parameter.KEYWORD_ONLY, default="auto", annotation=Agents))
        return made

    def option(self, name: str) -> str:
        """Return what a field is called on the command line, the first of its names."""
        return self._declared(name, self.schemas[name])[0].partition("/")[0]

    def _declared(self, name: str, schema: Schema) -> list[str]:
        if name in self._names:
            return self._names[name].split()
        option = option_of(name, schema)
        if schema.get("default") is True:
            option += option.replace("--", "/--no-", 1)
        return [option, *filter(None, [LETTERS.get(name)])]

    def _parameter(self, name: str, schema: Schema) -> Parameter:
        parsed, declared = TYPES[_item(schema)["type"]], self._declared(name, schema)
        is_role = name in self.roles
        default = "" if is_role else schema.get("default", ...)
        is_argument = not declared[0].startswith("-") or (default is ... and name not in self._names)
        metavar = None if parsed is bool else f"<{_kind(schema)}>"
        if is_argument:
            made = typer.Argument(default, help=_help(schema))
        else:
            helped = _help_of_role(schema) if is_role else _help(schema)
            variable = schema.get("variable") or VARIABLES.get(name)
            made = typer.Option(
                default,
                *declared,
                help=helped,
                envvar=variable,
                metavar=metavar,
                autocompletion=_choices(schema),
            )
        annotation = GenericAlias(list, (parsed,)) if "items" in _given(schema) else parsed
        return Parameter(name, Parameter.KEYWORD_ONLY, default=made, annotation=annotation)

    def checked(self, given: Values, command: str) -> BaseModel:
        """Take a model's values out of what was given, and check them. Raises BadInput, naming the option."""
        values = {name: given[name] for name in self.schemas}
        if self.roles:
            values |= {name: values[name] or given[AGENTS] for name in self.roles}
        try:
            return self.model.model_validate({name: each for name, each in values.items() if each != []})
        except ValidationError as error:
            first = error.errors()[0]
            option = self.option(str(first["loc"][0]))
            raise BadInput(
                f"{option} {first['input']}: {first['msg']}.", f"See `{command} --help`."
            ) from error

    def values(self, given: Values, command: str) -> Values:
        """Return the checked values of the fields that are options, as plain data. Raises BadInput."""
        checked = self.checked(given, command).model_dump(by_alias=True)
        return {name: checked[name] for name in self.schemas}


class Command:
    """A function for Typer in place of a coroutine or function, some of whose parameters are models.

    Where a parameter is annotated with `Fields`, each field of the model is an option.
    """

    def __init__(self, function: Callable[..., Any], *, prints_json: bool = True) -> None:
        self._function, self._fields = function, dict[str, tuple[Fields, bool]]()
        parameters, declared = list[Parameter](), list[Parameter]()
        hints = get_type_hints(function, include_extras=True)
        for each in inspect.signature(function).parameters.values():
            hint = hints[each.name]
            more = getattr(hint, "__metadata__", ())
            if fields := next((found for found in more if isinstance(found, Fields)), None):
                self._fields[each.name] = fields, hint.__origin__ is BaseModel
                declared += fields.parameters
            else:
                parameters.append(each.replace(annotation=hint))
        self._own = {each.name for each in parameters}
        _sign(self, [*parameters, *declared], prints_json=prints_json)

    def __call__(self, **given: Any) -> None:
        path = given.pop(CONTEXT).command_path
        own = {name: each for name, each in given.items() if name in self._own}
        models = {
            name: fields.checked(given, path) if is_model else fields.values(given, path)
            for name, (fields, is_model) in self._fields.items()
        }
        with json_lines(given.get(AS_JSON, False)):
            done = self._function(**own, **models)
            if inspect.iscoroutine(done):
                run_command(done)
        raise typer.Exit(done or 0)


class Call:
    """A function for Typer that calls an operation and prints what it returns.

    `names` says what a parameter is called on the command line where its own name is not the option's, and
    `owner` what the option is called that says whose data it is. `shows` is the function that prints the
    result, as `module:name`, or else it is printed as rows; `told` makes of the result and what was given the
    result that is printed; `called` is what one that is no object is called in JSON; `fails` says whether it
    is a failure; `versions` is the command that lists the versions where one was not found; `searching` says
    whether vectors are searched.
    """

    def __init__(
        self,
        calls: str,
        *,
        names: Names | None = None,
        owner: str = "",
        shows: str = "",
        told: str = "",
        called: str = "",
        fails: str = "",
        versions: str = "",
        searching: bool = False,
    ) -> None:
        self._calls = calls
        self._shows, self._told, self._fails = shows, told, fails
        self._called, self._versions, self._searching = called, versions, searching
        declared = json.loads(DECLARED.read_text(encoding="utf-8"))[calls]
        self._fields = Fields(lambda: _arguments(self._operation), names, known=declared["parameters"])
        mine = Parameter(
            OWNER, Parameter.KEYWORD_ONLY, default="local", annotation=OWNERS[owner or declared["owner"]]
        )
        _sign(self, [*self._fields.parameters, mine])

    @property
    def _operation(self) -> "Operation":
        return operation_of(self._calls)

    def __call__(self, *, as_json: bool, **given: Any) -> None:
        with json_lines(as_json):
            run_command(self._called_with(given.pop(OWNER), given))

    async def _called_with(self, owner: str, given: Values) -> int:
        values = dict(self._fields.checked(given, given[CONTEXT].command_path))
        values = {name: _with_zone(each) for name, each in values.items() if name in self._fields.schemas}
        from mneme.client.home import open_operations  # slow to import

        operation = self._operation
        reading, searching = operation.route.method == "GET", self._searching
        async with open_operations(operation.kind, owner, reading=reading, searching=searching) as on:
            try:
                result = await getattr(on, operation.name)(**values)
            except NotFound as error:
                if self._versions and not error.hint:
                    error.hint = f"`{self._versions.format(**values)}` lists the versions."
                raise
        result = named(self._told)(result, values) if self._told else result
        print_result(result, named(self._shows) if self._shows else print_rows, self._called)
        return int(bool(self._fails) and named(self._fails)(result))


def _sign(function: Any, parameters: Iterable[Parameter], *, prints_json: bool = True) -> None:
    """Give a function these parameters and `--json`, each once: what several declare is one option."""
    found = {each.name: each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters}
    if prints_json:
        found[AS_JSON] = Parameter(AS_JSON, Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    found[CONTEXT] = Parameter(CONTEXT, Parameter.KEYWORD_ONLY, annotation=typer.Context)
    function.__signature__ = Signature(list(found.values()))
    function.__annotations__ = {name: each.annotation for name, each in found.items()}


def named(where: str, package: str = "mneme.cli") -> Any:
    """Return what `module:name` names in a package."""
    module, _, name = where.partition(":")
    return getattr(import_module(f"{package}.{module}"), name)


def operation_of(calls: str) -> "Operation":
    """Return the operation that `module:Class.name` names in `mneme.api`."""
    place, _, name = calls.rpartition(".")
    found: Operation = named(place, "mneme.api").OFFERED[name]
    return found


def arguments_of(kind: "type[Operations]", name: str) -> type[BaseModel]:
    """Return an operation's parameters as a model."""
    return _arguments(kind.OFFERED[name])


def _arguments(operation: "Operation") -> type[BaseModel]:
    taken = {
        name: (each.annotation, ... if each.default is Parameter.empty else each.default)
        for name, each in operation.parameters.items()
    }
    made: type[BaseModel] = create_model(operation.name, __config__=ConfigDict(frozen=True), **taken)  # type: ignore[call-overload]
    return made


def _with_zone(value: Any) -> Any:
    """Return a moment without a time zone as a local one."""
    return value.astimezone() if isinstance(value, datetime) and value.tzinfo is None else value


def option_of(name: str, schema: Schema) -> str:
    """Return a field's option; a list's option has the name of one item."""
    if "items" in _given(schema):
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return "--" + str(schema.get("option", name)).replace("_", "-")


def _help_of_role(schema: Schema) -> str:
    from mneme.nodes.context import RESPONDER  # slow to import

    return f"{schema['description'].removesuffix(RESPONDER).strip(' .')}; default: --agents."


def _given(schema: Schema) -> Schema:
    """Return the schema of an optional field without None."""
    return next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)


def _item(schema: Schema) -> Schema:
    """Return the schema of one value, of a list's items too."""
    given = _given(schema)
    item: Schema = given.get("items", given)
    return item


def _kind(schema: Schema) -> str:
    item = _item(schema)
    formats = {"path": "path", "date": "day", "date-time": "time"}
    return formats.get(item.get("format", ""), TYPES[item["type"]].__name__)


def _choices(schema: Schema) -> Callable[[str], list[str]] | None:
    """Return what completes a value in the shell, where only some values are allowed."""
    named = sorted(map(str, _item(schema).get("enum", ())))
    return (lambda incomplete: [each for each in named if each.startswith(incomplete)]) if named else None


def _help(schema: Schema) -> str:
    """Return the description with the allowed values."""
    item, said = _item(schema), [schema["description"]]
    if "enum" in item:
        said.append(f"One of: {' | '.join(map(str, item['enum']))}.")
    elif (least := item.get("minimum")) is not None:
        most = item.get("maximum", LARGEST)
        said.append(f"{least} to {most}." if most < LARGEST else f"{least} or more." if least else "")
    elif schema.get("examples") and item["type"] == "string" and not schema.get("default"):
        example = next(filter(None, schema["examples"]))
        said.append(f"E.g. {example[0] if isinstance(example, list) else example}.")
    if "items" in _given(schema):
        said.append("Repeatable.")
    return " ".join(filter(None, said))
