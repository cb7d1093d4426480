"""Read YAML documents as models; errors name the document, the line and the field.

Aliases and repeated fields are refused: no document of ours needs them, and both can hide what a document
means.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadInput, first_fault

M = TypeVar("M", bound=BaseModel)
MAX_YAML_BYTES = 64 * 1024


class _Loader(yaml.SafeLoader):
    """Read plain YAML only."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not read", self.get_mark())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        counted = Counter(name.value for name, _ in node.value if isinstance(name, yaml.ScalarNode))
        for name, _ in node.value:
            if isinstance(name, yaml.ScalarNode) and counted[name.value] > 1:
                said = f"field {name.value} is there twice"
                raise yaml.constructor.ConstructorError(None, None, said, name.start_mark)
        return super().construct_mapping(node, deep=deep)


def read_yaml(text: str, kind: type[M], where: str) -> M:
    """Read one document as `kind`. Raises `BadInput` that names `where`, line and field."""
    return next(read_documents(text or "null", kind, where))  # an empty text has no document


def read_documents(text: str, kind: type[M], where: str, ignored: Sequence[str] = ()) -> Iterator[M]:
    """Yield every document as `kind`, without the `ignored` fields. Raises BadInput as `read_yaml` does."""
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # there is one, as was checked
            data = loader.construct_document(node)
            if isinstance(data, dict):
                data = {name: item for name, item in data.items() if name not in ignored}
            yield _valid(data, kind, node, where)
    except yaml.YAMLError as broken:
        mark, position = getattr(broken, "problem_mark", None), getattr(broken, "position", None)
        line = mark.line if mark else text.count("\n", 0, position)
        said = getattr(broken, "problem", None) or getattr(broken, "reason", "")
        raise BadInput(f"{where}, line {line + 1}, is not YAML: {said}.", "Fix that line.") from broken
    except (RecursionError, ValueError) as broken:  # nested too deeply; a date that does not exist
        raise BadInput(f"{where} is not YAML: {broken}", "Correct it.") from broken


def _valid(data: object, kind: type[M], node: yaml.Node, where: str) -> M:
    try:
        return kind.model_validate(data)
    except ValidationError as wrong:
        line = f", line {_line_of(node, wrong.errors()[0]['loc'])}"
        hint = f"A file of this kind has: {', '.join(kind.model_fields)}."
        raise BadInput(f"{where}{line}: {first_fault(wrong, 'the document')}", hint) from wrong


def _line_of(node: yaml.Node, loc: Sequence[int | str]) -> int:
    """Return the line of a field, or of what should hold it where it is missing."""
    line = node.start_mark.line + 1
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
    """Read a small UTF-8 file. Raises `BadInput` if it is absent, too large or in another encoding."""
    try:
        if path.stat().st_size > MAX_YAML_BYTES:
            raise BadInput(
                f"{path} is larger than {MAX_YAML_BYTES} bytes.", "Give a file that describes one thing."
            )
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as unreadable:
        why = unreadable.strerror if isinstance(unreadable, OSError) else "it is not UTF-8"
        raise BadInput(f"{path} cannot be read: {why}.", "Give the path of a YAML file.") from unreadable
