"""Cards as YAML, the authoritative form (§6): one document per card, its older versions on request.

Reading is strict and says where: the line and the path of the field. Everything is checked before
anything is stored. Aliases and repeated fields are refused: a card needs neither, and both
can make a document mean something other than it shows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, CardVersion, Moment, Part
from mneme.stores.ledger.records import Value

FIELDS = (
    *("id", "version", "status", "claim", "rationale", "rules", "evidence", "deprecated_approaches"),
    *("failure_modes", "provenance", "confidence", "tags", "scope"),
)
"""The paper's order; what it does not have follows."""
BREAKS = "\r\x85\u2028\u2029"
"""Line breaks that YAML would read as another one, unless they are escaped."""
LARGEST = 64 * 1024 * 1024
Path = tuple[int | str, ...]


class Former(Part):
    """An older version of a card, with the reason for which it was written."""

    at: Moment
    reason: str
    actor: str
    model: str = ""
    tasks: list[str] = Field([])
    card: Card

    def as_version(self) -> CardVersion:
        return CardVersion.model_validate(self.model_dump())


class Document(Card):
    """A card, and where asked for its whole history, oldest first; the last of it is the card."""

    history: list[Former] = Field([])
    signature: str = Field("", description="Of the team that exported it; see `card_files.py`.")

    @model_validator(mode="after")
    def _ends_in_the_card(self) -> "Document":
        numbers = [former.card.version for former in self.history]
        if any(former.card.id != self.id for former in self.history):
            raise ValueError("the history holds another card")
        if numbers != sorted(set(numbers)):
            raise ValueError("the history's versions must rise")
        if self.history and self.history[-1].card != self.card:
            raise ValueError("the last version of the history is not the card")
        return self

    @property
    def card(self) -> Card:
        return Card.model_validate(self.model_dump(exclude={"history", "signature"}))

    @property
    def signed(self) -> Value:
        """Return what the signature is of."""
        value: Value = self.model_dump(mode="json", exclude={"signature"})
        return value


class _Dumper(yaml.SafeDumper):
    """Write long texts as blocks, and nothing as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    strange = any(character in BREAKS for character in text)
    style = '"' if strange else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


class _Loader(yaml.SafeLoader):
    """Read plain YAML only."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise yaml.composer.ComposerError(None, None, "a card has no aliases", mark)
        return super().compose_node(parent, index)


def document_of(card: Card, history: Sequence[CardVersion] = ()) -> Document:
    """Return a card, on request with its history, as a document that is not signed yet."""
    past = [Former.model_validate(each.model_dump()) for each in history]
    return Document.model_validate({**card.model_dump(), "history": past})


def dump(card: Card, history: Sequence[CardVersion] = (), signature: str = "") -> str:
    """Return one YAML document."""
    fields = _ordered(card) | ({"signature": signature} if signature else {})
    if history:
        fields["history"] = [
            {**each.model_dump(mode="json", exclude={"card"}), "card": _ordered(each.card)}
            for each in history
        ]
    text: str = yaml.dump(
        fields, Dumper=_Dumper, explicit_start=True, sort_keys=False, allow_unicode=True, width=100
    )
    return text


def load(text: str) -> list[Document]:
    """Read every document. Raises BadInput with the line and the field of the first that is wrong."""
    if len(text) > LARGEST:
        raise BadInput(f"A YAML file of cards may have {LARGEST} characters; this one has {len(text)}.")
    documents = [_document(number, node, data) for number, (node, data) in enumerate(_parsed(text), 1)]
    seen: set[str] = set()
    for document in documents:
        if document.id in seen:
            raise BadInput(f"Invalid YAML: the card {document.id} is there twice.")
        seen.add(document.id)
    return documents


def _ordered(card: Card) -> dict[str, Any]:
    fields = card.model_dump(mode="json")
    return {name: fields[name] for name in (*FIELDS, *(each for each in fields if each not in FIELDS))}


def _parsed(text: str) -> Iterator[tuple[yaml.Node, Any]]:
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # there is one, as was checked
            _check_names(node, ())
            yield node, _built(loader, node)
    except yaml.MarkedYAMLError as broken:
        line = broken.problem_mark.line + 1 if broken.problem_mark else "?"
        raise BadInput(f"Invalid YAML in line {line}: {broken.problem}.") from broken
    except yaml.reader.ReaderError as broken:
        line = text.count("\n", 0, broken.position) + 1
        raise BadInput(f"Invalid YAML in line {line}: {broken.reason}.") from broken
    except RecursionError as broken:
        raise BadInput("Invalid YAML: it is nested too deeply.") from broken


def _built(loader: _Loader, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except ValueError as impossible:  # a date that does not exist
        line = node.start_mark.line + 1
        raise BadInput(f"Invalid YAML in the document at line {line}: {impossible}.") from impossible


def _document(number: int, node: yaml.Node, data: Any) -> Document:
    try:
        return Document.model_validate(data)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        path = tuple(first["loc"])
        raise BadInput(
            f"Invalid card in document {number}, line {_line(node, path)}, "
            f"field {_said(path)}: {first['msg']}.",
            "Nothing was stored. See `mneme cards export` for the form.",
        ) from invalid


def _check_names(node: yaml.Node, path: Path) -> None:
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            _check_names(item, (*path, number))
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for name, item in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise BadInput(f"Invalid YAML in line {name.start_mark.line + 1}: a field's name is a word.")
            if name.value in names:
                line = name.start_mark.line + 1
                raise BadInput(
                    f"Invalid YAML in line {line}: field {_said((*path, name.value))} is there twice."
                )
            names.add(name.value)
            _check_names(item, (*path, name.value))


def _line(node: yaml.Node, path: Path) -> int:
    """Return the line of a field, or of the nearest field around it that is there."""
    line = node.start_mark.line + 1
    for step in path:
        found = _below(node, step)
        if found is None:
            return line
        line, node = found
    return line


def _below(node: yaml.Node, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    if isinstance(node, yaml.MappingNode):
        for name, item in node.value:
            if name.value == step:
                return name.start_mark.line + 1, item
    return None


def _said(path: Path) -> str:
    return ".".join(map(str, path)) or "(the whole document)"
