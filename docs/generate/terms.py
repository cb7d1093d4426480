"""Write the sentences of `docs/explanation/terms.md`: each is the first line of its definition's docstring.

The rows of the page say which terms there are, and where. `python docs/generate/terms.py` renews the page.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/terms.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
"""A term, its sentence, and the file and the name of its definition."""


def sentence(file: str, definition: str) -> str:
    """Return the first line of a definition's docstring."""
    node: ast.AST = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for name in definition.split("."):
        node = next(each for each in ast.iter_child_nodes(node) if getattr(each, "name", "") == name)
    assert isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef)
    return (ast.get_docstring(node) or "").partition("\n")[0]


def generated(page: str) -> str:
    """Return the page with the sentences that the definitions have now."""
    return ROW.sub(lambda row: row[0].replace(f"| {row[2]} |", f"| {sentence(row[3], row[4])} |", 1), page)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
