"""Tables that break no word; in a terminal too narrow for that, each row becomes a card."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import table as rich_table
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.text import Text

GAP = 2
"""Spaces between two columns."""
READABLE = 16
"""Minimum width of a column whose text is longer."""


def figure(number: float) -> str:
    """Format a number for reading: its first three digits, or all digits before the point."""
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


@dataclass
class Table:
    """Text in rows and columns, or one card per row if the columns do not fit side by side.

    With `figures`, all columns but the first are aligned to the right, and columns that do not fit are
    printed below, with the first column repeated. `lines` separates the rows.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: bool = False
    lines: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        first, *others = self._parts(options.max_width)
        if others and not self.figures and self.rows:
            yield from self._cards(options.max_width)
            return
        yield self._part(self.title, first, options.max_width)
        for part in others:
            yield ""
            yield self._part("", part, options.max_width)

    def _cards(self, width: int) -> Iterator[RenderableType]:
        """Yield each row as lines of a column's name and its value, without empty values."""
        if self.title:
            yield Text(self.title, style="italic")
        named = min(max(map(cell_len, self.columns)), width // 2)
        for number, row in enumerate(self.rows):
            card = rich_table.Table.grid(padding=(0, GAP, 0, 0))
            card.add_column(width=named, style="bold", overflow="fold")
            card.add_column(overflow="fold")  # a word that is wider still is broken, not cut
            for name, cell in zip(self.columns, row, strict=True):
                if cell:
                    card.add_row(escape(name), escape(cell))
            yield from ([""] if number else [])
            yield card

    def _parts(self, width: int) -> Iterator[list[int]]:
        """Yield the columns of each part: the first column, and as many others as fit."""
        part = [0]
        for number in range(1, len(self.columns)):
            if len(part) > 1 and _together([self._least(each, width) for each in (*part, number)]) > width:
                yield part
                part = [0]
            part.append(number)
        yield part

    def _part(self, title: str, part: Sequence[int], width: int) -> rich_table.Table:
        made = rich_table.Table(
            title=escape(title) or None,
            title_justify="left",
            header_style="bold",
            box=SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            collapse_padding=True,
            show_lines=self.lines,
        )
        # The width is divided in proportion to what each column lacks.
        least = [self._least(number, width) for number in part]
        lacking = [self._whole(number) - each for number, each in zip(part, least, strict=True)]
        spare = max(0, min(width - _together(least), sum(lacking)))
        for number, narrow, lacks in zip(part, least, lacking, strict=True):
            wide = narrow + spare * lacks // max(1, sum(lacking))
            justify: Literal["left", "right"] = "right" if number and self.figures else "left"
            made.add_column(escape(self.columns[number]), justify=justify, width=wide, overflow="fold")
        for row in self.rows:
            made.add_row(*(escape(row[number]) for number in part))
        return made

    def _whole(self, number: int) -> int:
        """Return the width at which no line of a column is wrapped."""
        lines = [line for cell in self._cells(number) for line in cell.splitlines()]
        return max(map(cell_len, [self.columns[number], *lines]))

    def _least(self, number: int, width: int) -> int:
        """Return the width at which no word of a column is broken and its text can be read."""
        words = [word for cell in self._cells(number) for word in cell.split()]
        whole = max((cell_len(line) for cell in self._cells(number) for line in cell.splitlines()), default=0)
        least = max([min(whole, READABLE), *map(cell_len, [*self.columns[number].split(), *words])])
        return min(least, width // 2)

    def _cells(self, number: int) -> list[str]:
        return [row[number] for row in self.rows]


def _together(widths: Sequence[int]) -> int:
    """Return the total width of columns side by side."""
    return sum(widths) + GAP * (len(widths) - 1)
