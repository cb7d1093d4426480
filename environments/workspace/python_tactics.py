"""Two changes of Python source that a program can make, each for a well-known cause of slowness.

They read the syntax tree and edit the text, so that comments and layout stay. Each may change what a function
means (a list that holds lists has no set; what is cached must not be changed later): the tests say so. They
cannot choose another algorithm, move work out of a loop, or see across files.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mneme.environments.workspace.tactics import Tactics

SET, CACHE = "SET membership", "CACHE calls"
DEFINITION = f"""A pattern is one of these, which a program carries out, or an approach in plain words:
{SET}: what is looked for in a list within a loop is looked up in a set that is made before it.
{CACHE}: functools.cache on the functions that take arguments.
Several are written with `;` between them."""
LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CHANGING = frozenset(("append", "add", "remove", "pop", "insert", "extend", "clear", "discard", "update"))
"""Methods after which a collection may hold something else."""


class Found(NamedTuple):
    """A look-up within a loop, with the statement of the function's own body that holds the loop."""

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


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _membership(node: ast.AST) -> tuple[ast.expr, str] | None:
    """Match `… in name`."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return None
    inside = node.comparators[0]
    return (inside, inside.id) if isinstance(inside, ast.Name) else None


def _memberships(tree: ast.Module) -> Iterator[Found]:
    """Yield what is looked up within loops, but of names that the loop changes."""
    for function in _functions(tree):
        for statement in function.body:
            loops = [node for node in ast.walk(statement) if isinstance(node, LOOPS)]
            for node in {id(node): node for loop in loops for node in ast.walk(loop)}.values():
                hit = _membership(node)
                if hit and not _is_set(statement, hit[1]):
                    yield Found(statement, *hit)


def _is_set(statement: ast.AST, name: str) -> bool:
    """Say whether a statement binds a name, or calls what may change what it names."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        method = node.func if isinstance(node, ast.Call) else None
        owner = method.value if isinstance(method, ast.Attribute) and method.attr in CHANGING else None
        if isinstance(owner, ast.Name) and owner.id == name:
            return True
    return False


def _recursive(function: ast.FunctionDef) -> bool:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    return names.count(function.name) > 1


def _use_sets(tree: ast.Module) -> Iterator[Edit]:
    for statement, node, name in _memberships(tree):
        assert node.end_lineno is not None and node.end_col_offset is not None
        yield Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), f"{name}_set")
        yield _before(statement, f"{name}_set = set({name})")


def _use_caches(tree: ast.Module) -> Iterator[Edit]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.args.args]
    wanted = [each for each in functions if _recursive(each)] or functions
    for function in wanted:
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
        if not yields and not function.decorator_list:
            yield _before(function, "@functools.cache")


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
        if not (
            future
            or (at == 0 and (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)))
        ):
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
    first = (CACHE, SET)
    ending = ".py"
    changes: Mapping[str, Callable[[str], str]] = {
        SET: _change(_use_sets),
        CACHE: _change(_use_caches, "functools"),
    }
    signs: Mapping[str, Callable[[str], bool]] = {
        "membership test in a loop": _sign(lambda tree: any(_memberships(tree))),
        "repeated recursion": _sign(lambda tree: any(_recursive(each) for each in _functions(tree))),
    }
