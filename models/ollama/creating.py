"""Make a model in Ollama of one that it has and an adapter: upload the files, then `/api/create`."""

import hashlib
import re
from pathlib import Path

import httpx
from ollama import AsyncClient, ResponseError

from mneme.core.errors import BadInput
from mneme.models.ollama.catalogue import absent, bearer, clear_catalogue, tls
from mneme.models.ollama.transport import meaning

CREATE_TIMEOUT = httpx.Timeout(600, connect=5)
"""Converting an adapter takes seconds, of a large model minutes."""
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


def model_name(team: str, tag: str) -> str:
    """Return the name of a team's tuned model in Ollama."""
    plain = NOT_IN_NAMES.sub("-", team.lower()).strip("-.")[:40]
    # Ollama allows few characters: two teams whose names become the same are told apart by a checksum.
    mark = "" if plain == team else f"-{hashlib.sha256(team.encode()).hexdigest()[:6]}"
    return f"mneme-{plain}{mark}:{tag}"


async def create(url: str, name: str, base: str, adapter: Path) -> None:
    """Make a model of `base` and the adapter in a folder; one of that name is replaced.

    Raises BadInput where Ollama refuses the adapter, ModelUnavailable where it has no such base or cannot
    be reached.
    """
    client = AsyncClient(url, timeout=CREATE_TIMEOUT, verify=tls(url), headers=bearer())
    async with client:
        try:
            files = {each: await client.create_blob(adapter / each) for each in ADAPTER_FILES}
            done = await client.create(name, from_=base, adapters=files)
        except ResponseError as error:
            if "pull model manifest" in error.error:  # it has no such base, and its registry neither
                raise absent(base) from error
            if error.status_code == 400:
                raise BadInput(f"Ollama refuses the adapter: {error.error}", ADAPTER_HINT) from error
            raise meaning(error, url, base) from error
        except (httpx.TransportError, OSError) as error:
            raise meaning(error, url, base) from error
    if done.status != "success":
        raise BadInput(f"Ollama did not make {name} of the adapter.", ADAPTER_HINT)
    clear_catalogue()  # the name may have been another model's before


ADAPTER_HINT = "Its base must be the model that was tuned, and of a family that Ollama takes adapters for."
