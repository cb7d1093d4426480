"""Notes in Markdown: what counts as a statement, when it was written, and which files are read."""

import os
from datetime import datetime
from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.importing import markdown
from tests.importing.exports import texts

NOTE = """---
title: Our trip
created: 2024-05-03
tags: [travel]
---
# Norway
We went to [[Norway|the north]] with **Anna**. #travel
#only #tags

For the trip I need:
- a tent
- food:
  - bread
  - [x] cheese
- [ ] skis

> She said
> something.

> [!note] Mine
> I like boxes.

## Gear
![[picture.png]]
My pack weighs
12 kg. ^abc %% not this %%

```py
code = 1
```

| a | b |
|---|---|
| 1 | 2 |
# Food
Diet:: vegan
"""


def test_each_paragraph_and_item_is_a_statement_with_what_it_stands_under(tmp_path: Path) -> None:
    (tmp_path / "trip.md").write_text(NOTE)
    reading = markdown.read(tmp_path)
    assert texts(reading.items) == [
        "We went to the north with Anna. travel",
        "a tent",
        "bread",
        "Done: cheese",
        "To do: skis",
        "Mine I like boxes.",
        "My pack weighs 12 kg.",
        "Diet: vegan",
    ]
    by_text = {each.text: each for each in reading.items}
    assert by_text["bread"].before == [
        "user: (In my note “Our trip > Norway”:)",
        "user: For the trip I need:",
        "user: food:",
    ]
    assert by_text["My pack weighs 12 kg."].before == ["user: (In my note “Our trip > Norway > Gear”:)"]
    assert by_text["Diet: vegan"].before == ["user: (In my note “Our trip > Food”:)"]
    noon = datetime(2024, 5, 3, 12).astimezone()
    assert {each.time for each in reading.items} == {noon}
    assert reading.skipped == {"quotations": 1, "pieces of code": 1, "tables": 1}


def test_a_note_that_is_read_again_has_the_same_ids_but_for_what_changed(tmp_path: Path) -> None:
    note = tmp_path / "2024-05-03 diary.md"
    note.write_text("I ran.\n\nI slept.\n\n# Evening\nI ran.")
    first = markdown.read(tmp_path).items
    assert [each.time and f"{each.time:%F}" for each in first] == ["2024-05-03"] * 3, "by the file's name"
    note.write_text("---\ndate: 2024-06-01\n---\nI ran.\n\nI slept well.\n\n# Evening\nI ran.")
    second = markdown.read(note).items
    fresh = {each.id for each in second} - {each.id for each in first}
    assert [each.text for each in second if each.id in fresh] == ["I slept well."]
    assert [each.time and f"{each.time:%F}" for each in second] == ["2024-06-01"] * 3
    other = tmp_path / "plain.md"
    other.write_text("---\ndate: [never\n---\nI ran.")
    os.utime(other, (0, 86_400 * 365))
    reading = markdown.read(other)
    assert [each.time and each.time.timestamp() for each in reading.items] == [86_400 * 365]
    assert "front matter cannot be read" in reading.notes[0]


def test_files_that_are_no_notes_are_left_out_with_a_word(tmp_path: Path) -> None:
    vault, elsewhere = tmp_path / "vault", tmp_path / "elsewhere"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "deep").mkdir()
    elsewhere.mkdir()
    (elsewhere / "secret.md").write_text("The secret is 42.")
    (vault / "out.md").symlink_to(elsewhere / "secret.md")
    (vault / "outside").symlink_to(elsewhere)
    (vault / "loop").symlink_to(vault)
    (vault / ".obsidian" / "hidden.md").write_text("Hidden.")
    (vault / "deep" / "note.MD").write_bytes(b"\xef\xbb\xbfI have a cat.\r\n")
    (vault / "binary.md").write_bytes(b"a\x00b")
    (vault / "latin.md").write_bytes(b"caf\xe9")
    (vault / "huge.md").write_text("word " * 500_000)
    (vault / "picture.png").write_bytes(b"\x89PNG")
    reading = markdown.read(vault)
    assert texts(reading.items) == ["I have a cat."]
    assert sorted(note.rpartition("/")[2] for note in reading.notes) == [
        "binary.md: binary",
        "huge.md: larger than 2 MB",
        "latin.md: not UTF-8 text",
        "out.md: a link that leads out of the folder",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="has no notes"):
        markdown.read(tmp_path / "empty")
    with pytest.raises(BadInput, match="There is no"):
        markdown.read(tmp_path / "missing")
