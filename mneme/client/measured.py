"""Results of `mneme eval model` for each model, kept in MNEME_HOME for `mneme doctor`."""

from collections.abc import Mapping

from pydantic import BaseModel, TypeAdapter, ValidationError

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput, StorageFailure
from mneme.core.private import make_private_folder
from mneme.core.settings import settings

MEASURED_FILE = "measured_models.json"


class Fitness(BaseModel):
    """Fitness of a model for a role, and the reason if it is not fit."""

    fit: bool
    why: str = ""
    on: str
    """The day, in ISO form."""


class ModelMeasurements(BaseModel):
    """Measurements of one model; roles are named `<workflow>: <role>`."""

    digest: str = ""
    """Digest of the weights, if Ollama reports it: another digest is another model."""
    roles: dict[str, Fitness] = {}


MEASURED_MODELS = TypeAdapter(dict[str, ModelMeasurements])
"""All measured models by their responder."""


def measured_models() -> Mapping[str, ModelMeasurements]:
    """Return the measurements by responder; empty before the first one. Raises `BadInput`."""
    file = settings().home / MEASURED_FILE
    try:
        return MEASURED_MODELS.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        what = f"{file} cannot be read: {str(error).splitlines()[0]}."
        raise BadInput(what, "Remove it, and run `mneme eval model` again.") from error


def keep_measured(responder: str, digest: str, roles: Mapping[str, Fitness]) -> None:
    """Store a model's measurements; roles that were not measured this time keep theirs."""
    known = dict(measured_models())
    before = known.get(responder)
    kept = before.roles if before and before.digest == digest else {}  # another digest is another model
    known[responder] = ModelMeasurements(digest=digest, roles={**kept, **roles})
    file = settings().home / MEASURED_FILE
    try:
        make_private_folder(file.parent)
        write_durably(file, MEASURED_MODELS.dump_json(known, indent=1))
    except OSError as error:
        raise StorageFailure(f"Cannot write {file}: {error.strerror}.", "Set MNEME_HOME.") from error
