"""Operations on an owner's data, each declared once, at its method.

The declaration gives the server's typed route and the call that is sent to it, and with them the command
line, the library, the tools of an agent and those of an MCP server.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from mneme.core.errors import BadInput, MnemeError, NotFound
from mneme.core.settings import settings
from mneme.stores.answers import KeptAnswers
from mneme.stores.audit import was_shown
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import MAX_INT, Change, check_name, team_namespace, user_namespace

Owner = Literal["user", "team"]
Method = Literal["GET", "POST"]
Function = TypeVar("Function", bound=Callable[..., Any])
RENAMED = {"to": "to_version"}
"""Present names of parameters by those of earlier versions."""

BY_USER = "user"
"""Default author of a change."""
ROUTE = "__mneme_route__"
API_PATH = "/mneme/v1"
"""Path below which a server has the routes of all operations."""
CONSOLE = "console"
"""Name of the caller that is a person at the console."""
CONSOLE_PATH = "/console"
"""Path of a server's console, a page for people."""
PROBLEM_TYPE = "application/problem+json"
CALLER_HEADER = "x-mneme-caller"
"""Header that names the program on whose behalf a change is made, for the history."""
ONCE = "Idempotency-Key"
"""Header with a key: a changing request that is repeated with it is executed only once."""

Key = Annotated[str, Field(description="The key, or its first letters.", examples=["0197f3c2"])]
Limit = Annotated[int, Field(ge=1, le=1000, description="How many at most.")]
Offset = Annotated[int, Field(ge=0, le=MAX_INT, description="How many to pass over.")]
Reason = Annotated[str, Field(max_length=2000, description="Why; kept in the history.")]


@dataclass(frozen=True)
class Route:
    """The HTTP method of an operation, its path below the server's root of operations, what it does."""

    method: Method
    path: str
    erases: bool = False


def reads(path: str) -> Callable[[Function], Function]:
    """Declare a method that changes nothing as an operation; `{name}` in the path is a parameter."""
    return _declared(Route("GET", path))


def changes(path: str, *, erases: bool = False) -> Callable[[Function], Function]:
    """Declare a method that changes something as an operation; `{name}` in the path is a parameter.

    An operation that `erases` cannot be undone, and returns no text of the erased records.
    """
    return _declared(Route("POST", path, erases))


def _declared(route: Route) -> Callable[[Function], Function]:
    def mark(function: Function) -> Function:
        @wraps(function)
        async def checked(self: "Operations", *args: Any, **kwargs: Any) -> Any:
            # In this process, too, a call is held to the bounds that a server's routes have.
            operation = self.OFFERED[function.__name__]
            return await function(self, **operation.checked(*args, **kwargs))

        setattr(checked, ROUTE, route)
        return cast(Function, checked)

    return mark


class Operations:
    """Operations on the data of one owner, in this process; no other owner's data is reached."""

    OWNER: ClassVar[Owner]
    """Whether a user or a team owns the data."""
    OFFERED: "ClassVar[Mapping[str, Operation]]"
    """The declared operations by name, in the order of their paths, the fixed before the variable."""

    def __init_subclass__(cls) -> None:
        declared = {name: getattr(getattr(cls, name), ROUTE, None) for name in dir(cls)}
        found = [Operation(cls, name, route) for name, route in declared.items() if route is not None]
        # The first route that fits is taken: `memories/{key}` would fit `memories/search`, too.
        found.sort(key=lambda each: (each.route.path.count("{"), each.route.path))
        cls.OFFERED = {each.name: each for each in found}

    def __init__(self, ledger: Ledger, owner: str, caller: str = BY_USER) -> None:
        self._ledger, self._owner, self._caller = ledger, owner, caller
        self._who = None if settings().auth is None else owner  # without keys the one person has all rights
        self._prepare()

    def _prepare(self) -> None:
        """Open the stores that the operations of a class use."""

    @property
    def answers(self) -> KeptAnswers:
        """Stored answers for repeated requests on the owner's data."""
        namespace = user_namespace if self.OWNER == "user" else team_namespace
        return KeptAnswers(self._ledger, namespace(self._owner))

    def _was_shown(self, keys: Iterable[str]) -> None:
        """Note which of the user's memories a program is shown; a person is not noted."""
        program = self._caller.rpartition(", ")[2]  # with keys the caller is "ann, mcp"
        if self._caller != BY_USER and program != CONSOLE:
            was_shown(self._ledger, self._owner, self._caller, keys)

    def _change(self, reason: str, otherwise: str) -> Change:
        """Return why a version is written, and by whom."""
        return Change(reason=reason.strip() or otherwise, actor=self._caller)


Kind = TypeVar("Kind", bound=Operations)


@dataclass(frozen=True)  # a cached property writes to `__dict__`, which this does not forbid
class Operation:
    """One operation of a class: its route, parameters and result."""

    kind: type[Operations]
    name: str
    route: Route

    @property
    def is_reading(self) -> bool:
        """Whether the operation changes nothing."""
        return self.route.method == "GET"

    @property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self.kind, self.name)
        return function

    @property
    def description(self) -> str:
        """Description of the operation, for a reader of the routes."""
        return inspect.getdoc(self._function) or ""

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters by name, with their types resolved."""
        hints = self._hints
        given = list(inspect.signature(self._function).parameters.values())[1:]
        return {each.name: each.replace(annotation=hints[each.name]) for each in given}

    @cached_property
    def fields(self) -> Mapping[str, tuple[Any, Any]]:
        """The type and the default of each parameter, for `pydantic.create_model`."""
        return {
            name: (each.annotation, ... if each.default is inspect.Parameter.empty else each.default)
            for name, each in self.parameters.items()
        }

    @cached_property
    def in_path(self) -> Mapping[str, inspect.Parameter]:
        """The parameters in the path."""
        return {name: each for name, each in self.parameters.items() if f"{{{name}}}" in self.route.path}

    @cached_property
    def beside_path(self) -> Mapping[str, inspect.Parameter]:
        """The other parameters: of the query where it reads, of the body where it changes."""
        return {name: each for name, each in self.parameters.items() if name not in self.in_path}

    @cached_property
    def returns(self) -> TypeAdapter[Any]:
        """The type of the result."""
        return TypeAdapter(self.result_type)

    @property
    def result_type(self) -> Any:
        """The annotation of the result."""
        return self._hints["return"]

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self._function, include_extras=True)

    @cached_property
    def _types(self) -> Mapping[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(each.annotation) for name, each in self.parameters.items()}

    def refuse_renamed(self, given: Any) -> Any:
        """Return what was given by name, unchanged. Raises BadInput for a parameter's earlier name."""
        for old, new in RENAMED.items():
            if isinstance(given, Mapping) and old in given and new in self.parameters:
                raise BadInput(f"`{old}` is `{new}` now.", "The reference has all parameters.")
        return given

    def checked(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments of a call by name, within the declared bounds. Raises TypeError, BadInput."""
        self.refuse_renamed(kwargs)
        bound = inspect.signature(self._function).bind(None, *args, **kwargs).arguments  # None is `self`
        given, wrong = dict[str, Any](), list[str]()
        for name in bound.keys() & self.parameters.keys():
            try:
                given[name] = self._types[name].validate_python(bound[name])
            except ValidationError as error:
                wrong += [complaint((name, *each["loc"]), each["msg"]) for each in error.errors()]
        if wrong:
            raise not_allowed(sorted(wrong))
        return given


def complaint(where: Iterable[object], what: str) -> str:
    """Return the error in a part of a request."""
    return f"{'.'.join(map(str, where)) or 'the body'}: {what}"


def not_allowed(wrong: Sequence[str]) -> BadInput:
    """Return the error for a call, or a request, that the declaration of its operation does not allow."""
    return BadInput(
        f"The request is not valid: {'; '.join(wrong)}.",
        "The reference says what each parameter takes; a server shows it at /docs.",
    )


def problem_of(error: MnemeError, status: int) -> dict[str, Any]:
    """Return an error as problem details (RFC 9457), from which a client raises it again."""
    return {
        "type": f"urn:mneme:{type(error).__name__}",
        "title": (type(error).__doc__ or "").partition("\n")[0],
        "status": status,
        "detail": str(error),
        "hint": error.hint,
    }


def only(beginning: str, ids: Sequence[str], owner: str, what: str, command: str) -> str:
    """Return the only id of an owner that begins so, also without `card_`. Raises NotFound, BadInput."""
    if not beginning.strip():
        hint = f"Give its id or the first letters; `{command}` shows them."
        raise BadInput(f"The id of the {what} is missing.", hint)
    if check_name(beginning, "id") in ids:
        return beginning
    found = [
        each for each in ids if each.startswith(beginning) or each.partition("_")[2].startswith(beginning)
    ]
    if not found:
        raise NotFound(f"{owner} has no {what} {beginning}.", f"See `{command}`.")
    if len(found) > 1:
        raise BadInput(f"{len(found)} ids begin with {beginning}.", "Give more letters of the id.")
    return found[0]
