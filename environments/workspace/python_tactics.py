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


class Edit(NamedTuple):
    """Text that takes the place of a stretch of the source, by line (from 1) and byte column."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class PythonTactics(Tactics):
    """Patterns for Python functions."""

    definition = DEFINITION
    first = (CACHE, SET, COUNT, DEQUE)
    names = (SET, COUNT, DEQUE, CACHE)
    ending = ".py"

    def known_features(self) -> Sequence[str]:
        """Return the features that a condition can name."""
        return tuple(FEATURES)

    def features(self, files: dict[str, str]) -> list[str]:
        """Name what the functions do that is slow on much data."""
        trees = [tree for text in files.values() if (tree := _parsed(text))]
        return [name for name, sees in FEATURES.items() if any(sees(tree) for tree in trees)]

    def applied(self, step: str, text: str) -> str:
        """Return a file's text with one of the changes made; unchanged where it cannot be parsed."""
        tree = _parsed(text)
        return _edited(text, list(TACTICS[step](tree)), IMPORTS.get(step, "")) if tree else text


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _lookups(function: Function) -> Iterator[tuple[ast.stmt, ast.Name]]:
    """Yield each name that `in` looks into within a loop that does not set it, with the outermost loop."""
    for statement, node in _in_loops(function):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            inside = node.comparators[0]
            if isinstance(inside, ast.Name) and not _is_set(statement, inside.id):
                yield statement, inside


def _counts(function: Function) -> Iterator[tuple[ast.stmt, ast.Call, ast.Name]]:
    """Yield each `name.count(…)` within a loop that does not set the name, with the outermost loop."""
    for statement, node in _in_loops(function):
        if (name := _called(node, "count")) and not _is_set(statement, name.id):
            assert isinstance(node, ast.Call)
            yield statement, node, name


def _in_loops(function: Function) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """Yield the nodes within loops, with the statement of the function's own body that holds the loop."""
    for statement in function.body:
        seen: set[int] = set()
        for loop in (node for node in ast.walk(statement) if isinstance(node, LOOPS)):
            for node in ast.walk(loop):
                if id(node) not in seen:
                    seen.add(id(node))
                    yield statement, node


def _is_set(statement: ast.AST, name: str) -> bool:
    """Say whether a statement binds a name, or calls what may change what it names."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        changes = ("append", "add", "remove", "pop", "insert", "extend", "clear", "discard", "update")
        if any((found := _called(node, each)) and found.id == name for each in changes):
            return True
    return False


def _called(node: ast.AST, method: str) -> ast.Name | None:
    """Return the name whose method a node calls."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return None
    return node.func.value if isinstance(node.func.value, ast.Name) else None


def _queues(function: Function) -> Iterator[tuple[ast.Call, ast.Name]]:
    """Yield each `name.pop(0)` within a loop."""
    for _, node in _in_loops(function):
        name = _called(node, "pop")
        if name and isinstance(node, ast.Call) and len(node.args) == 1 and _is_zero(node.args[0]):
            yield node, name


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _recursive(function: Function) -> bool:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    return names.count(function.name) > 1


def _use_sets(tree: ast.Module) -> Iterator[Edit]:
    for function in _functions(tree):
        made: set[tuple[int, str]] = set()
        for statement, name in _lookups(function):
            yield _replaced(name, f"{name.id}_set")
            if (statement.lineno, name.id) not in made:
                made.add((statement.lineno, name.id))
                yield _before(statement, f"{name.id}_set = set({name.id})")


def _use_counters(tree: ast.Module) -> Iterator[Edit]:
    for function in _functions(tree):
        made: set[tuple[int, str]] = set()
        for statement, call, name in _counts(function):
            yield _replaced(call, f"{name.id}_counts[{ast.unparse(call.args[0])}]")
            if (statement.lineno, name.id) not in made:
                made.add((statement.lineno, name.id))
                yield _before(statement, f"{name.id}_counts = collections.Counter({name.id})")


def _use_deques(tree: ast.Module) -> Iterator[Edit]:
    for function in _functions(tree):
        names: dict[str, None] = {}
        for call, name in _queues(function):
            names[name.id] = None
            yield _replaced(call, f"{name.id}.popleft()")
        for wanted in names:
            yield from _as_deque(function, wanted)


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
    for start, end, new in sorted(set(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
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


TACTICS: Mapping[str, Callable[[ast.Module], Iterator[Edit]]] = {
    SET: _use_sets,
    CACHE: _use_caches,
    COUNT: _use_counters,
    DEQUE: _use_deques,
}
IMPORTS = {CACHE: "functools", COUNT: "collections", DEQUE: "collections"}
FEATURES: Mapping[str, Callable[[ast.Module], bool]] = {
    "membership test in a loop": lambda tree: any(any(_lookups(each)) for each in _functions(tree)),
    "count in a loop": lambda tree: any(any(_counts(each)) for each in _functions(tree)),
    "queue emptied from the front": lambda tree: any(any(_queues(each)) for each in _functions(tree)),
    "repeated recursion": lambda tree: any(_recursive(each) for each in _functions(tree)),
}
