"""Who answers in an evaluation, named so that a result can be told from another's."""

import httpx
from pydantic import BaseModel

from mneme.core.errors import ModelUnavailable
from mneme.core.settings import settings
from mneme.models.asking.asking import resolve
from mneme.models.asking.responders import check
from mneme.models.ollama import catalogue

SECONDS = 10.0


class Identity(BaseModel):
    """A responder, with the digest of its weights where Ollama tells it."""

    responder: str
    digest: str = ""

    @property
    def is_model(self) -> bool:
        return self.responder != "rules"

    def __str__(self) -> str:
        return f"{self.responder} ({self.digest[:12]})" if self.digest else self.responder


async def identify(who: str) -> Identity:
    """Return who answers for a responder setting, decided once for the whole run.

    Raises `ModelUnavailable` where Ollama is to answer and cannot.
    """
    responder = await resolve(who)
    provider, _, model = responder.partition(":")
    if provider != "ollama":
        await check(responder)
        return Identity(responder=responder)
    await catalogue.facts(settings().ollama_url, model)
    return Identity(responder=responder, digest=await _digest(model))


async def _digest(model: str) -> str:
    """Return the digest of a model's weights and settings."""
    url = settings().ollama_url
    try:
        async with httpx.AsyncClient(base_url=url, timeout=SECONDS, headers=catalogue.bearer()) as client:
            tags = (await client.get("/api/tags")).raise_for_status().json()
    except httpx.HTTPError as error:
        raise ModelUnavailable(f"Ollama at {url} does not list its models: {error}.") from error
    named = {tag["name"]: tag.get("digest", "") for tag in tags.get("models", ())}
    return str(named.get(model) or named.get(f"{model}:latest", ""))
