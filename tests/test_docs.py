"""The documentation: what its pages link to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if "://" not in link and not leads(page, link)]
    assert broken == []


def leads(page: Path, link: str) -> bool:
    place, _, part = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    return target.exists() and (not part or part in anchors(target))


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as they are linked to."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
