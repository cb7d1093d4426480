"""Read what a small model replied: take what is surely meant, refuse everything else with a reason.

Only what has one meaning is taken as it is: the forms of `json_objects.py`, and an enum's word in another
case. Whatever is cut, missing or ambiguous is refused with a sentence for the model, which is asked again.
"""

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from mneme.models.asking.json_objects import Json, objects, unwrapped
from mneme.models.asking.schema import flat
from mneme.models.asking.unusable import Unusable

A = TypeVar("A", bound=BaseModel)

THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def read(raw: str, answer: type[A]) -> A:
    """Return the one JSON object of a reply as the answer, or raise `Unusable`."""
    schema = flat(answer)
    found = unwrapped(_one_object(raw), schema.get("properties", {}))
    _require_fields(found, schema, "", raw)
    try:
        return answer.model_validate_json(json.dumps(_with_enum_words(found, schema)))
    except ValidationError as error:
        raise Unusable(_in_words(error), raw) from error


def _one_object(raw: str) -> Json:
    """Find the JSON object in a reply; more than one, unless they are the same, is ambiguous."""
    try:
        found = objects(raw if raw.lstrip().startswith("{") else without_thought(raw))
    except Unusable as unusable:
        raise Unusable(str(unusable), raw) from unusable
    if not found:
        cut = " It looks cut off." if "{" in raw else ""
        raise Unusable(f"The reply is not a complete JSON object.{cut}", raw)
    if any(other != found[0] for other in found):
        raise Unusable("The reply has more than one JSON object; give exactly one.", raw)
    return found[0]


def without_thought(text: str) -> str:
    """Return a reply without its thinking, also where only the closing tag is there."""
    return THOUGHT_END.split(THOUGHT.sub("", text))[-1].strip()


def _require_fields(found: Any, schema: Json, path: str, raw: str) -> None:
    """Refuse an object that leaves out a demanded field, which validation would fill with a default."""
    if isinstance(found, list):
        for number, item in enumerate(found):
            _require_fields(item, schema.get("items", {}), f"{path}[{number}]", raw)
    if not isinstance(found, dict):
        return
    missing = [name for name in schema.get("required", ()) if name not in found]
    if missing:
        place = f" in {path}" if path else ""
        raise Unusable(f"Missing field{place}: {', '.join(missing)}.", raw)
    for name, inner in schema.get("properties", {}).items():
        _require_fields(found.get(name), inner, f"{path}.{name}" if path else name, raw)


def _with_enum_words(found: Any, schema: Json) -> Any:
    """Write each enum's word as the schema writes it, where only case or spaces differ."""
    if isinstance(found, list):
        return [_with_enum_words(item, schema.get("items", {})) for item in found]
    if isinstance(found, dict):
        inner = schema.get("properties", {})
        return {name: _with_enum_words(value, inner.get(name, {})) for name, value in found.items()}
    if not isinstance(found, str):
        return found
    meant = [word for word in schema.get("enum", ()) if str(word).casefold() == found.strip().casefold()]
    return meant[0] if len(meant) == 1 else found


def _in_words(error: ValidationError) -> str:
    complaints = [f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}" for e in error.errors()]
    return "; ".join(complaints)
