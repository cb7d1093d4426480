"""Four changes of Python source that a program can make, each for a well-known cause of slowness.

They read the syntax tree and edit the text, so that comments and layout stay. Each may change what a function
means (a list that holds lists has no set; what is cached must not be changed later): the tests say so. They
cannot choose another algorithm, move work out of a loop, or see across files.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mneme.environments.workspace.tactics import Tactics

SET, CACHE, COUNT, DEQUE = "SET membership", "CACHE calls", "COUNT once", "DEQUE queue"
DEFINITION = f"""A pattern is one of these, which a program carries out, or an approach in plain words:
{SET}: what is looked for in a list within a loop is looked up in a set that is made before it.
{CACHE}: functools.cache on the functions that take arguments.
{COUNT}: list.count within a loop becomes a Counter that is made before it.
{DEQUE}: list.pop(0) becomes popleft of a collections.deque.
Several are written with `;` between them."""
LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Function = ast.FunctionDef
Hit = tuple[ast.expr, str]
"""An expression, and the name in it."""
Match = Callable[[ast.AST], Hit | None]


class Found(NamedTuple):
    """A match within a loop, with the statement of the function's own body that holds the loop."""

    function: Function
    statement: ast.stmt
    node: ast.expr
    name: str


class Edit(NamedTuple):
    """Text that takes the place of a stretch of the source, by line (from 1) and byte column."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _membership(node: ast.AST) -> Hit | None:
    """Match `… in name`."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return None
    inside = node.comparators[0]
    return (inside, inside.id) if isinstance(inside, ast.Name) else None


def _count(node: ast.AST) -> Hit | None:
    """Match `name.count(…)`."""
    return _called(node, "count")


def _first_out(node: ast.AST) -> Hit | None:
    """Match `name.pop(0)`."""
    hit = _called(node, "pop")
    return hit if hit and [ast.unparse(each) for each in hit[0].args] == ["0"] else None


def _called(node: ast.AST, method: str) -> tuple[ast.Call, str] | None:
    """Match `name.method(…)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return None
    return (node, node.func.value.id) if isinstance(node.func.value, ast.Name) else None


def _found(tree: ast.Module, match: Match, *, changing: bool = False) -> Iterator[Found]:
    """Yield what matches within loops, but of names that the loop changes unless that is asked for."""
    for function in _functions(tree):
        for statement in function.body:
            loops = [node for node in ast.walk(statement) if isinstance(node, LOOPS)]
            for node in {id(node): node for loop in loops for node in ast.walk(loop)}.values():
                hit = match(node)
                if hit and (changing or not _is_set(statement, hit[1])):
                    yield Found(function, statement, *hit)


def _is_set(statement: ast.AST, name: str) -> bool:
    """Say whether a statement binds a name, or calls what may change what it names."""
    changes = ("append", "add", "remove", "pop", "insert", "extend", "clear", "discard", "update")
    hits = (_called(node, each) for node in ast.walk(statement) for each in changes)
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name)
    return any(isinstance(node.ctx, ast.Store) for node in stored) or any(
        hit[1] == name for hit in hits if hit
    )


def _recursive(function: Function) -> bool:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    return names.count(function.name) > 1


def _use_sets(tree: ast.Module) -> Iterator[Edit]:
    for _, statement, node, name in _found(tree, _membership):
        yield _replaced(node, f"{name}_set")
        yield _before(statement, f"{name}_set = set({name})")


def _use_counters(tree: ast.Module) -> Iterator[Edit]:
    for _, statement, node, name in _found(tree, _count):
        assert isinstance(node, ast.Call)
        yield _replaced(node, f"{name}_counts[{ast.unparse(node.args[0])}]")
        yield _before(statement, f"{name}_counts = collections.Counter({name})")


def _use_deques(tree: ast.Module) -> Iterator[Edit]:
    for function, _, node, name in _found(tree, _first_out, changing=True):
        yield _replaced(node, f"{name}.popleft()")
        yield from _as_deque(function, name)


def _as_deque(function: Function, name: str) -> Iterator[Edit]:
    """Make a deque where the name gets its value, or of the argument at the function's beginning."""
    for node in ast.walk(function):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if value is not None and any(isinstance(each, ast.Name) and each.id == name for each in targets):
            yield _replaced(value, f"collections.deque({ast.unparse(value)})")
    if name in {each.arg for each in function.args.args}:
        first = function.body[1 if _is_text(function.body[0]) and len(function.body) > 1 else 0]
        yield _before(first, f"{name} = collections.deque({name})")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _use_caches(tree: ast.Module) -> Iterator[Edit]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.args.args]
    wanted = [each for each in functions if _recursive(each)] or functions
    for function in wanted:
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
        if not yields and not function.decorator_list:
            yield _before(function, "@functools.cache")


def _replaced(node: ast.expr, text: str) -> Edit:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text)


def _before(statement: ast.stmt, line: str) -> Edit:
    at = (statement.lineno, statement.col_offset)
    return Edit(at, at, f"{line}\n{' ' * statement.col_offset}")


def _edited(text: str, edits: Sequence[Edit], needed: str) -> str:
    """Make the edits from the end on, so that places before them stay; import what they need."""
    if not edits:
        return text
    lines = text.encode().split(b"\n")
    for start, end, new in sorted(set(edits), reverse=True):
        head, rest = lines[start[0] - 1][: start[1]], lines[end[0] - 1][end[1] :]
        lines[start[0] - 1 : end[0]] = [head + new.encode() + rest]
    edited = b"\n".join(lines).decode()
    has = not needed or f"import {needed}\n" in edited
    return edited if has else _with_import(edited, f"import {needed}")


def _with_import(text: str, line: str) -> str:
    """Put an import after the module's docstring and its imports from the future."""
    tree = ast.parse(text)
    at = 0
    for statement in tree.body:
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (future or (at == 0 and _is_text(statement))):
            break
        at = statement.end_lineno or at
    lines = text.split("\n")
    return "\n".join([*lines[:at], line, *lines[at:]])


def _change(edits: Callable[[ast.Module], Iterator[Edit]], needed: str = "") -> Callable[[str], str]:
    """Return what makes edits in a text; one that cannot be parsed stays."""

    def changed(text: str) -> str:
        tree = _parsed(text)
        return _edited(text, list(edits(tree)), needed) if tree else text

    return changed


def _sign(sees: Callable[[ast.Module], bool]) -> Callable[[str], bool]:
    return lambda text: (tree := _parsed(text)) is not None and sees(tree)


class PythonTactics(Tactics):
    """Patterns for Python functions."""

    definition = DEFINITION
    first = (CACHE, SET, COUNT, DEQUE)
    ending = ".py"
    changes: Mapping[str, Callable[[str], str]] = {
        SET: _change(_use_sets),
        COUNT: _change(_use_counters, "collections"),
        DEQUE: _change(_use_deques, "collections"),
        CACHE: _change(_use_caches, "functools"),
    }
    signs: Mapping[str, Callable[[str], bool]] = {
        "membership test in a loop": _sign(lambda tree: any(_found(tree, _membership))),
        "count in a loop": _sign(lambda tree: any(_found(tree, _count))),
        "queue emptied from the front": _sign(lambda tree: any(_found(tree, _first_out, changing=True))),
        "repeated recursion": _sign(lambda tree: any(_recursive(each) for each in _functions(tree))),
    }
