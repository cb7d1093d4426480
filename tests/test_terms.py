"""`docs/explanation/terms.md` leads from each term of the papers to the definition that names it."""

import runpy
from pathlib import Path

TERMS = runpy.run_path(str(Path(__file__).parents[1] / "docs/generate/terms.py"))
PAGE = TERMS["PAGE"].read_text(encoding="utf-8")
ROWS = TERMS["ROW"].findall(PAGE)


def test_each_sentence_is_its_definitions_and_names_the_term() -> None:
    assert TERMS["generated"](PAGE) == PAGE, "python docs/generate/terms.py renews the page"
    assert [term for term, sentence, *_ in ROWS if term.lower() not in sentence.lower()] == []


def test_the_page_has_the_terms_of_all_papers() -> None:
    assert len(ROWS) == PAGE.count("\n| ") - PAGE.count("\n| term |")
    assert PAGE.count("\n## ") == 5
    assert len({term for term, *_ in ROWS}) == len(ROWS) >= 27
