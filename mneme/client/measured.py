"""What `mneme eval model` found of each model, kept in MNEME_HOME for `mneme doctor`."""

from collections.abc import Mapping

from pydantic import BaseModel, TypeAdapter, ValidationError

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput, StorageFailure
from mneme.core.private import make_private_folder
from mneme.core.settings import settings

FILE = "measured_models.json"


class Fitness(BaseModel):
    """Whether a model is fit for a role, and if not, why."""

    fit: bool
    why: str = ""
    on: str
    """The day, in ISO form."""


class Measured(BaseModel):
    """What was measured of one model; roles by `<workflow>: <role>`."""

    digest: str = ""
    """Of its weights, where Ollama tells it: another one is another model."""
    roles: dict[str, Fitness] = {}


MEASURED_MODELS = TypeAdapter(dict[str, Measured])
"""Every measured model by its responder."""


def measured_models() -> Mapping[str, Measured]:
    """Return what was measured, by responder; nothing before the first time. Raises `BadInput`."""
    file = settings().home / FILE
    try:
        return MEASURED_MODELS.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        what = f"{file} cannot be read: {str(error).splitlines()[0]}."
        raise BadInput(what, "Remove it, and run `mneme eval model` again.") from error


def keep_measured(responder: str, digest: str, roles: Mapping[str, Fitness]) -> None:
    """Keep what was measured of a model; roles that were not measured this time stay as they were."""
    known = dict(measured_models())
    before = known.get(responder)
    kept = before.roles if before and before.digest == digest else {}
    known[responder] = Measured(digest=digest, roles={**kept, **roles})
    file = settings().home / FILE
    try:
        make_private_folder(file.parent)
        write_durably(file, MEASURED_MODELS.dump_json(known, indent=1))
    except OSError as error:
        raise StorageFailure(f"Cannot write {file}: {error.strerror}.", "Set MNEME_HOME.") from error
