"""The house: which room imports which, what stands in no circle, and how long files and functions are."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mneme"


def may_import() -> dict[str, set[str]]:
    """Return what each room may import beside itself and `core`, as the page on the architecture says."""
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    table = dict[str, set[str]]()
    for line in page.partition("## Folders")[2].partition("\n## ")[0].splitlines():
        if not line.startswith("| `"):
            continue
        _, folders, _, allowed, _ = line.split("|")
        row, named = named_in(folders), named_in(allowed)
        above = {*table, *row}
        table |= dict.fromkeys(row, above - named if "all of the above" in allowed else named)
    return table


def named_in(cell: str) -> set[str]:
    """Return the modules in a cell of the table, such as `api` for `mneme/api/`."""
    return {name.strip("/").replace("/", ".") for name in re.findall("`(?:mneme/)?([^`]*)`", cell)}


MAY_IMPORT = may_import()
LONGEST_FILE, LONGEST_FUNCTION = 450, 50
"""Lines that a file and a function have at most, tests included."""


class Import(NamedTuple):
    """Who imports which module of ours, where, and whether only a type checker sees it."""

    importer: str
    place: str
    imported: str
    for_types: bool


@cache
def modules() -> Mapping[str, Path]:
    """Return our modules by their names."""
    files = [*PACKAGE.glob("*.py"), *(file for room in MAY_IMPORT for file in (PACKAGE / room).rglob("*.py"))]
    return {name_of(file.relative_to(ROOT)): file for file in sorted(files)}


def name_of(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


@cache
def imports() -> tuple[Import, ...]:
    """Return all imports of modules of ours, those in functions too."""
    return tuple(each for name, file in modules().items() for each in imports_of(name, file))


def imports_of(importer: str, file: Path) -> Iterator[Import]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    package = importer if file.name == "__init__.py" else importer.rpartition(".")[0]
    typing = {id(each) for node in ast.walk(tree) if is_for_types(node) for each in ast.walk(node)}
    for node in ast.walk(tree):
        for name in names(node, package):
            if name.split(".")[0] == "mneme":
                place = f"{file.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
                yield Import(importer, place, module_of(name), id(node) in typing)


def is_for_types(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    tested = node.test
    return "TYPE_CHECKING" in (getattr(tested, "id", ""), getattr(tested, "attr", ""))


def names(node: ast.AST, package: str) -> list[str]:
    """Return what a statement imports, in full."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    origin = resolve_name("." * node.level + (node.module or ""), package)
    return [f"{origin}.{each.name}" for each in node.names]


def module_of(name: str) -> str:
    """Return the module that an imported name stands in, or is."""
    return name if name in modules() else name.rpartition(".")[0]


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def is_allowed(each: Import) -> bool:
    own = room(each.importer)
    allowed = (f"mneme.{place}." for place in (own, "core", *MAY_IMPORT[own]))
    return f"{each.imported}.".startswith(tuple(allowed))


def circle(edges: Iterable[tuple[str, str]]) -> str:
    """Return a circle of these edges in words, or nothing."""
    sorter = TopologicalSorter[str]()
    for one, other in edges:
        sorter.add(one, other)
    try:
        sorter.prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def test_the_table_has_all_rooms() -> None:
    assert {file.parent.name for file in PACKAGE.glob("*/__init__.py")} == set(MAY_IMPORT)


def test_a_room_imports_what_the_table_allows() -> None:
    wrong = [each for each in imports() if room(each.importer) in MAY_IMPORT and not is_allowed(each)]
    assert [f"{each.place} imports {each.imported}" for each in wrong] == []


def test_rooms_stand_in_no_circle() -> None:
    pairs = {(room(each.importer), room(each.imported)) for each in imports() if room(each.importer)}
    assert circle((one, other) for one, other in pairs if one != other) == ""


def test_modules_stand_in_no_circle() -> None:
    """An import in a function closes a circle too: it hides one, and does not undo it."""
    found = ((each.importer, each.imported) for each in imports() if not each.for_types)
    assert circle((one, other) for one, other in found if one != other) == ""


def test_files_and_functions_are_short() -> None:
    files = [*modules().values(), *(ROOT / "tests").rglob("*.py")]
    assert [file for file in files if len(file.read_text().splitlines()) > LONGEST_FILE] == []
    long = [
        f"{file}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


OTHER_NAMES_ON_THE_COMMAND_LINE = {
    "environment": "--world",  # as `mneme learn` has it, which makes the environment of more than that
    "everything": "--all",  # `all` is a function of Python
    "person": "--as",  # `as` is a word of Python
}
"""Fields and parameters whose option has another name, and why."""


def test_an_option_has_the_name_of_its_field() -> None:
    """What Python, REST and MCP call `tokens` is `--tokens`; a list's option has the name of one item."""
    declared = tomllib.loads((PACKAGE / "cli/commands.toml").read_text(encoding="utf-8"))
    found = [*named_in_declarations(declared)]
    for file in (PACKAGE / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Fields":
                dicts = [ast.literal_eval(each) for each in node.args if isinstance(each, ast.Dict)]
                found += [pair for names in dicts for pair in names.items()]
    first = {field: option.split()[0].partition("/")[0] for field, option in found}
    others = {field: option for field, option in first.items() if not is_name_of(option, field)}
    assert others == OTHER_NAMES_ON_THE_COMMAND_LINE


def is_name_of(option: str, field: str) -> bool:
    return option.strip("-").replace("-", "_") in {field, field.removesuffix("s")}


def named_in_declarations(declared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the fields to which declared commands give an option by hand, with it."""
    yield from declared.get("names", {}).items()
    for below in declared.values():
        if isinstance(below, dict) and "names" not in declared:
            yield from named_in_declarations(below)
