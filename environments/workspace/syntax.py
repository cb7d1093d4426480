"""What a Python file does that may be slow on much data: features, read from its syntax tree."""

import ast
from collections.abc import Iterator, Sequence

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
NESTED, JOINED, SHIFTED = "loop in a loop", "text joined in a loop", "list shifted in a loop"
CALLED = {
    **dict.fromkeys(("sorted", "sort"), "sort in a loop"),
    **dict.fromkeys(("count", "index"), "search in a loop"),
    **dict.fromkeys(("copy", "deepcopy"), "copy in a loop"),
    **dict.fromkeys(("open", "read", "readline", "readlines", "read_text"), "input or output in a loop"),
    **dict.fromkeys(("write", "write_text", "execute", "urlopen"), "input or output in a loop"),
}
"""What a call in each round of a loop is, by the name of the function or method."""
IMPORTED = {"numpy": "arrays", "pandas": "data frames"}
FEATURES = frozenset({NESTED, JOINED, SHIFTED, *CALLED.values(), *IMPORTED.values()})


def features_of(text: str) -> set[str]:
    """Return the features of a file; none of one that is no Python."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return set()
    rounds = (part for node in nodes for part in _each_round(node))
    modules = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    known = {IMPORTED.get(name.partition(".")[0]) for name in modules}
    found = {feature for part in rounds for node in ast.walk(part) for feature in _of_round(node)}
    return found | {each for each in known if each}


def _each_round(node: ast.AST) -> Sequence[ast.AST]:
    """Return what a loop does in each round; what it goes over is read once, and no part of it."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.body
    if isinstance(node, ast.While):
        return [node.test, *node.body]
    if not isinstance(node, COMPREHENSIONS):
        return []
    first, *others = node.generators
    made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    return [*made, *first.ifs, *others]


def _of_round(node: ast.AST) -> Iterator[str]:
    if isinstance(node, LOOPS):
        yield NESTED
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        parts = [each.value if isinstance(each, ast.Constant) else each for each in ast.walk(node.value)]
        if any(isinstance(each, str | ast.JoinedStr) for each in parts):
            yield JOINED
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in CALLED:
            yield CALLED[name]
        first = node.args[0] if node.args else None
        if name in {"pop", "insert"} and isinstance(first, ast.Constant) and first.value == 0:
            yield SHIFTED
