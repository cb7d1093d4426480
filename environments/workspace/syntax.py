"""Features of a file that may be slow on much data: Python by its syntax tree, shell by the lexer `shlex`."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from shlex import shlex

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
NESTED, JOINED, SHIFTED = "loop in a loop", "text joined in a loop", "list shifted in a loop"
RECURSIVE, INPUT_OUTPUT = "repeated recursion", "input or output in a loop"
CALLED = {
    **dict.fromkeys(("sorted", "sort"), "sort in a loop"),
    **dict.fromkeys(("count", "index"), "search in a loop"),
    **dict.fromkeys(("copy", "deepcopy"), "copy in a loop"),
    **dict.fromkeys(("open", "read", "readline", "readlines", "read_text"), INPUT_OUTPUT),
    **dict.fromkeys(("write", "write_text", "execute", "urlopen"), INPUT_OUTPUT),
}
"""Feature of a call in each round of a loop, by the name of the function or method."""
IMPORTED = {"numpy": "arrays", "pandas": "data frames"}
CACHE = "CACHE calls"
# A frozenset can be hashed.
COLLECTION = re.compile(r"(?i)(?<!frozen)(array|deque|dict|frame|iter|list|mapping|sequence|set)")
"""Types in an annotation whose values cannot be hashed, mostly."""
HASH_COMMENT = re.compile(r"""(?m)^\s*#.*$|(?<=\s)#[^'"\n]*$""")
OPERATORS = "();<>|&`\n"
LINES, PROGRAM = "loop over lines", "program in a loop"
COMMAND_FEATURES = {
    "read": LINES,
    "sort": "sort in a loop",
    **dict.fromkeys(("grep", "egrep", "fgrep"), "search in a loop"),
    **dict.fromkeys(("cat", "head", "tail", "cp", "mv", "curl", "wget"), INPUT_OUTPUT),
    **dict.fromkeys(("awk", "basename", "bc", "cut", "date", "dirname", "expr"), PROGRAM),
    **dict.fromkeys(("jq", "perl", "python3", "sed", "seq", "tr", "uniq", "wc"), PROGRAM),
}
"""Feature of a shell command in each round of a loop."""
BEFORE_COMMANDS = re.compile(r"!|{|do|elif|else|env|exec|if|sudo|then|time|until|while|\w+=.*")
BUILT_IN_METHODS = {name for kind in (list, dict, set) for name in vars(kind)}


def features_of(text: str) -> set[str]:
    """Return the features of a Python file; none if it cannot be parsed."""
    nodes = _nodes(text)
    rounds = (part for node in nodes for part in _each_round(node))
    modules = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    known = {IMPORTED.get(name.partition(".")[0]) for name in modules}
    found = {feature for part in rounds for node in ast.walk(part) for feature in _of_round(node)}
    return found | {each for each in known if each} | ({RECURSIVE} if _recursive(nodes) else set())


def _shell_words(text: str) -> list[str]:
    """Return the words and operators; a quoted text with `$(…)` is replaced by that command."""
    lexer = shlex(HASH_COMMENT.sub("", text.replace("\\\n", " ")), posix=True, punctuation_chars=OPERATORS)
    # A newline is an operator, after which a command begins; comments were taken out above, since shlex
    # would also take the # of `${#name}` for one.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        found = [(word, word.partition("$(")[2].replace(")", " ) ")) for word in lexer]
    except ValueError:  # a quotation that nothing ends
        return []
    return [each for word, run in found for each in (["(", *run.split()] if run else [word])]


def shell_features_of(text: str) -> set[str]:
    """Return the features of a script: what its loops do in each round, their conditions included."""
    found: set[str] = set()
    depth, conditions, is_command, is_target = 0, 0, True, False
    for word in _shell_words(text):
        if is_command and word in ("while", "until"):
            depth, conditions = depth + 1, conditions + 1
        elif is_command and word == "do":
            depth, conditions = depth + (not conditions), max(conditions - 1, 0)
        elif is_command and word == "done":
            depth -= 1
        elif depth and is_command:
            found |= {COMMAND_FEATURES.get(word.rpartition("/")[2], "")} - {""}
        elif depth and is_target and word != "/dev/null" and not word.isdigit():
            found.add(INPUT_OUTPUT)
        found |= {NESTED} if depth > 1 else set()
        is_operator = bool(word) and {*word} <= {*OPERATORS}
        is_target = is_operator and word.strip("&")[-1:] in ("<", ">")
        is_command = not is_target and (is_operator or bool(BEFORE_COMMANDS.fullmatch(word)))
    return found


FEATURE_READERS: Mapping[str, Callable[[str], set[str]]] = {".py": features_of, ".sh": shell_features_of}
"""Readers of a file's features, by its suffix."""
FEATURES_BY_SUFFIX: Mapping[str, frozenset[str]] = {
    ".py": frozenset({NESTED, JOINED, SHIFTED, RECURSIVE, *CALLED.values(), *IMPORTED.values()}),
    ".sh": frozenset({NESTED, INPUT_OUTPUT, *COMMAND_FEATURES.values()}),
}


def cached(text: str, callers: Iterable[str]) -> str:
    """Return a file with a cache on each function that is called repeatedly and iterates over no argument.

    Calls are repeated in a loop of the `callers` (texts), or by a function that calls itself more than once.
    """
    nodes, lines = _nodes(text), text.splitlines(keepends=True)
    rounds = [part for caller in callers for node in _nodes(caller) for part in _each_round(node)]
    called = {*_recursive(nodes), *(name for part in rounds for name in _calls(part))}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    for each in sorted(functions, key=lambda each: each.lineno, reverse=True):  # from below
        # Only functions of a module: the cache of a method would keep every `self` alive.
        if each.name in called and not each.col_offset and _can_be_hashed(each):
            lines.insert(each.lineno - 1, "@functools.cache\n")
    return "".join(lines)


def _nodes(text: str) -> list[ast.AST]:
    try:
        return [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _calls(node: ast.AST) -> list[str]:
    """Return the names of what is called in a node."""
    called = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    return [getattr(each, "attr", getattr(each, "id", "")) for each in called]


def _recursive(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the functions that call themselves more than once."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    # A function that calls itself once goes through its arguments; from two calls on, some may come again.
    return {each.name for each in functions if _calls(each).count(each.name) > 1}


def _can_be_hashed(function: ast.FunctionDef) -> bool:
    """Return whether a function has arguments, of which none is a collection by annotation or use."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    used = {_collection(node) for node in ast.walk(function)}
    return bool(given) and not any(
        COLLECTION.search(ast.unparse(each.annotation)) if each.annotation else each.arg in used
        for each in given
    )


def _collection(node: ast.AST) -> str:
    """Return the name of the collection that a node iterates over, searches, or changes."""
    match node:
        case (
            ast.For(iter=ast.Name(name))
            | ast.comprehension(iter=ast.Name(name))
            | ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(name)])
            | ast.Subscript(value=ast.Name(name), ctx=ast.Store() | ast.Del())
        ):
            return name
        case ast.Attribute(value=ast.Name(name), attr=attr) if attr in BUILT_IN_METHODS:
            return name
    return ""


def _each_round(node: ast.AST) -> Sequence[ast.AST]:
    """Return the nodes that a loop executes in each round, without its iterable, which is evaluated once."""
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
