"""Which questions each role of each workflow asks: a model is chosen by role, not by question."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from mneme.prompts.every import Key


class Role(NamedTuple):
    """A role, the field of its workflow's context that names its model, and the questions it is asked."""

    workflow: str
    field: str
    questions: Sequence[Key]
    variant: str = ""
    """Where the field serves several graphs with questions of their own: which of them."""

    def __str__(self) -> str:
        return f"{self.workflow}: {self.field}" + (f" ({self.variant})" if self.variant else "")


def _role(workflow: str, field: str, questions: Sequence[str], variant: str = "") -> Role:
    keys = [tuple(name.split("/")) if "/" in name else (workflow, name) for name in questions]
    return Role(workflow, field, [(first, second) for first, second in keys], variant)


_FILE = Path(__file__).with_name("roles.yaml")
ROLES: Sequence[Role] = [_role(**each) for each in yaml.safe_load(_FILE.read_text(encoding="utf-8"))]
"""Every role, in the order of the tables; memories of tasks serve discussions (`agents`) as well."""
