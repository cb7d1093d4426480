"""`docs/explanation/terms.md` leads from each term of the papers to the definition that names it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/explanation/terms.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)


def docstring(file: str, definition: str) -> str:
    node: ast.AST = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for name in definition.split("."):
        node = next(each for each in ast.iter_child_nodes(node) if getattr(each, "name", "") == name)
    assert isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef)
    return " ".join((ast.get_docstring(node) or "").split())


@pytest.mark.parametrize(("term", "file", "definition"), ROWS)
def test_a_definition_names_its_term(term: str, file: str, definition: str) -> None:
    assert term.lower() in docstring(file, definition).lower()


def test_the_page_has_the_terms_of_all_papers() -> None:
    assert len(ROWS) == PAGE.count("\n| ") - PAGE.count("\n| term |")
    assert PAGE.count("\n## ") == 5
    assert len({term for term, *_ in ROWS}) == len(ROWS) >= 27
