"""Make a model in Ollama of one that it has and an adapter: upload the files, then `/api/create`."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import httpx

from mneme.core.errors import BadInput, ModelUnavailable
from mneme.models.ollama.catalogue import absent, bearer, clear_catalogue, locked, stranger, tls, unreachable

PATIENCE = httpx.Timeout(600, connect=5)
"""Converting an adapter takes seconds, of a large model minutes."""
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
NAME = re.compile(r"[^a-z0-9._-]+")


def model_name(team: str, tag: str) -> str:
    """Return the name under which Ollama has a team's tuned model.

    Ollama's names have few letters; two teams whose names become the same are told apart by a checksum.
    """
    plain = NAME.sub("-", team.lower()).strip("-.")[:40]
    mark = "" if plain == team else f"-{hashlib.sha256(team.encode()).hexdigest()[:6]}"
    return f"mneme-{plain}{mark}:{tag}"


async def create(url: str, name: str, base: str, adapter: Path) -> None:
    """Make a model of `base` and the adapter in a folder; one of that name is replaced.

    Raises BadInput where Ollama refuses the adapter, ModelUnavailable where it has no such base or cannot
    be reached.
    """
    try:
        async with httpx.AsyncClient(
            base_url=url, timeout=PATIENCE, verify=tls(url), headers=bearer()
        ) as client:
            files = {each: await _uploaded(client, adapter / each) for each in ADAPTER_FILES}
            body = {"model": name, "from": base, "adapters": files, "stream": False}
            answer = await client.post("/api/create", json=body)
            _check(answer, base, url)
    except httpx.TransportError as error:
        raise unreachable(url, error) from error
    clear_catalogue()  # what it is now may differ from what was asked of it before


async def _uploaded(client: httpx.AsyncClient, file: Path) -> str:
    """Give Ollama a file that it lacks; return its digest."""
    content = await asyncio.to_thread(file.read_bytes)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if (await client.head(f"/api/blobs/{digest}")).status_code == 404:
        answer = await client.post(f"/api/blobs/{digest}", content=content)
        _check(answer, file.name, str(client.base_url))
    return digest


def _check(answer: httpx.Response, base: str, url: str) -> None:
    """Raise what a refusal means."""
    try:
        found = answer.json()
        said = str(found.get("error", "")) if isinstance(found, Mapping) else ""
    except ValueError:
        said = "" if answer.is_success else answer.text[:200]
    if answer.is_success and not said:
        return
    if answer.status_code in {401, 403}:
        raise locked(url)
    if "pull model manifest" in said:  # it has no such base, and its registry neither
        raise absent(base)
    if answer.status_code in {404, 405}:
        raise stranger(url)
    if answer.status_code == 400 or answer.is_success:
        raise BadInput(f"Ollama refuses the adapter: {said}", HINT)
    raise ModelUnavailable(f"Ollama cannot make the model ({answer.status_code}): {said}", HINT)


HINT = "Its base must be the model that was tuned, and of a family that Ollama takes adapters for."
