"""Read YAML files of agents and rubrics; errors name the file and the field."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadInput, first_fault

M = TypeVar("M", bound=BaseModel)
LARGEST = 64 * 1024


def read_yaml(text: str, kind: type[M], where: str) -> M:
    """Read one document as `kind`; what cannot be read raises `BadInput` naming `where`, line and field."""
    try:
        return kind.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as broken:
        mark = getattr(broken, "problem_mark", None)
        line = f", line {mark.line + 1}," if mark else ""
        said = " ".join(str(broken).split())
        raise BadInput(f"{where}{line} is not YAML: {said}", "Fix that line.") from broken
    except ValidationError as wrong:
        line = f", line {_line_of(text, wrong.errors()[0]['loc'])}"
        hint = f"A file of this kind has: {', '.join(kind.model_fields)}."
        raise BadInput(f"{where}{line}: {first_fault(wrong, 'the document')}", hint) from wrong


def _line_of(text: str, loc: Sequence[int | str]) -> int:
    """Return the line of a field, or of what should hold it where it is missing."""
    node, line = yaml.compose(text), 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            found = (node.value[part], node.value[part])
        else:
            found = None
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def text_of(path: Path) -> str:
    """Read a small UTF-8 file; one that is absent, too large or of another encoding raises `BadInput`."""
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path} is larger than {LARGEST} bytes.", "Give a file that describes one thing.")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as unreadable:
        raise BadInput(
            f"{path} cannot be read: {unreadable}", "Give the path of a YAML file."
        ) from unreadable
