"""Who answers in an evaluation, named so that a result can be told from another's."""

from pydantic import BaseModel

from mneme.core.settings import settings
from mneme.models.asking.asking import resolve
from mneme.models.asking.responders import check
from mneme.models.ollama import catalogue


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
    url = settings().ollama_url
    await catalogue.facts(url, model)
    digests = await catalogue.digests(url)
    return Identity(responder=responder, digest=digests.get(model) or digests.get(f"{model}:latest", ""))
