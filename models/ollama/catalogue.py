"""The contents of an Ollama server: version, models, their capabilities and limits, what is loaded."""

import os
import ssl
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import httpx
from pydantic import BaseModel, Field

from mneme.core.errors import BadInput, MnemeError, ModelUnavailable, NoTools, PromptTooLong

CATALOGUE_TIMEOUT = httpx.Timeout(10, connect=3)
GLANCE_TIMEOUT = httpx.Timeout(1.5)  # every command waits for it where `auto` answers


class Facts(BaseModel, frozen=True):
    """One model as the server describes it."""

    name: str
    capabilities: frozenset[str] = frozenset()
    context_length: int = 0
    embedding_length: int = 0
    parameters: str = ""
    quantization: str = ""
    template: str = Field("", repr=False)

    @property
    def thinks(self) -> bool:
        return "thinking" in self.capabilities

    @property
    def may_leak_thought(self) -> bool:
        """Return whether the template opens the thinking itself without the server knowing about it."""
        return not self.thinks and "<think>" in self.template

    def lacks(self, capability: str) -> bool:
        """Return whether the server says what the model can do, and this is not among it."""
        return bool(self.capabilities) and capability not in self.capabilities


class LoadedModel(BaseModel, frozen=True):
    """One model in memory: its effective context, and how much of it lies on the GPU."""

    name: str
    size: int = 0
    size_vram: int = 0
    context_length: int = 0

    @property
    def gpu_share(self) -> float:
        """The share of the model that is on the GPU, 0 to 1."""
        return self.size_vram / self.size if self.size else 0.0


class Server(BaseModel, frozen=True):
    """An Ollama server at one moment."""

    url: str
    version: str
    models: tuple[Facts, ...]
    loaded: tuple[LoadedModel, ...]


_known: dict[tuple[str, str], Facts] = {}


def clear_catalogue() -> None:
    """Clear what servers said about their models, for tests and after a model was pulled anew."""
    _known.clear()


_certified = lru_cache(maxsize=1)(ssl.create_default_context)


def tls(url: str) -> ssl.SSLContext:
    """Return a TLS context for a URL; an empty one for a URL without TLS."""
    # httpx would make a context for each client, and reading the certificates takes 15 ms.
    return _certified() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def bearer() -> dict[str, str]:
    """Return the authorisation header for OLLAMA_API_KEY, if it is set."""
    key = os.environ.get("OLLAMA_API_KEY", "")
    return {"Authorization": f"Bearer {key}"} if key else {}


class Refused(ModelUnavailable):
    """Nobody listens at the address."""


CHECK_HINT = "Check MNEME_OLLAMA_URL."


def unreachable(url: str, error: Exception) -> ModelUnavailable:
    """Return the error for a server that cannot be reached, with a hint."""
    if isinstance(error, httpx.TimeoutException):
        what = f"{url} gives no answer in time."
        return ModelUnavailable(what, f"Wait if Ollama is busy there; else look at the network. {CHECK_HINT}")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return ModelUnavailable(f"MNEME_OLLAMA_URL={url} is not an address.", URL_HINT)
    if isinstance(error, httpx.ConnectError | ConnectionError):
        why = str(error)
        if any(sign in why for sign in UNKNOWN_HOST):
            return ModelUnavailable(f"No machine is called {httpx.URL(url).host}.", CHECK_HINT)
        if "SSL" in why.upper():
            return ModelUnavailable(f"{url} cannot be trusted, or speaks no TLS: {why}.", CHECK_HINT)
        return Refused(f"No Ollama answers at {url}.", "Start it: ollama serve")
    return stranger(url)


URL_HINT = "Write it like http://127.0.0.1:11434"
UNKNOWN_HOST = (
    "Name or service not known",
    "nodename nor servname",
    "name resolution",
    "No address associated",
)
"""What systems say of a host that has no address."""


def stranger(url: str) -> ModelUnavailable:
    return ModelUnavailable(f"What answers at {url} is not Ollama.", CHECK_HINT)


def absent(model: str, known: Sequence[str] = ()) -> ModelUnavailable:
    others = f"; it has {', '.join(known[:5])}" if known else ""
    return ModelUnavailable(f"Ollama has no model {model!r}{others}.", f"Get it: ollama pull {model}")


def blind(model: str) -> ModelUnavailable:
    """Say that a model sees no pictures; Ollama lists "vision" among what a model can."""
    return ModelUnavailable(
        f"{model} sees no pictures.",
        "Choose a model with vision, such as `ollama pull qwen2.5vl:3b`: `mneme doctor` names what each can.",
    )


def toolless(model: str) -> NoTools:
    return NoTools(f"{model} does not support tools.", "Choose a model with tools, such as llama3.1:8b.")


def overlong(model: str) -> PromptTooLong:
    return PromptTooLong(f"The prompt does not fit the context of {model}.", "Raise MNEME_NUM_CTX.")


MODEL_REFUSALS: Sequence[tuple[str, Callable[[str], MnemeError]]] = (
    ("exceed_context_size", overlong),
    ("exceeds the context length", overlong),
    ("does not support tools", toolless),
    ("does not support multimodal", blind),
)
"""What Ollama says that a model cannot do, whatever the status, and what that means."""


def refusal(status: int, said: str, url: str, model: str = "") -> MnemeError:
    """Return the error for an error reply, with a hint."""
    # The words come before the status: an error within a stream has none.
    if unable := next((meaning for sign, meaning in MODEL_REFUSALS if sign in said), None):
        return unable(model)
    if status in {401, 403}:
        return ModelUnavailable(f"{url} does not let us in.", "Set OLLAMA_API_KEY to a valid key.")
    if status in {404, 405}:
        # Only Ollama names the model; another server has no such route.
        return absent(model) if model and "not found" in said else stranger(url)
    if status == 400 and model:
        return BadInput(f"Ollama refuses the request: {said}")
    return ModelUnavailable(
        f"Ollama at {url} fails ({status}): {said[:200]}", "See its log, or `mneme doctor`."
    )


async def digests(url: str) -> dict[str, str]:
    """Return the digests of a server's models by name; after GLANCE_TIMEOUT it counts as unreachable."""
    tags = await _request(url, "/api/tags", GLANCE_TIMEOUT)
    try:
        return {model["name"]: model.get("digest", "") for model in tags["models"]}
    except (KeyError, TypeError) as error:
        raise stranger(url) from error


async def facts(url: str, model: str) -> Facts:
    """Return the server's description of a model, requested once per process."""
    known = _known.get((url, model))
    if known is None:
        known = _known[url, model] = _facts(model, await _request(url, "/api/show", body={"model": model}))
    return known


async def vocabulary(url: str, model: str) -> dict[str, Any]:
    """Return the server's description of a model with its tokens and merges: some megabytes."""
    shown = await _request(url, "/api/show", body={"model": model, "verbose": True})
    return shown.get("model_info") or {}


async def survey(url: str) -> Server:
    """Return a server's version, its models and what is loaded, for `mneme doctor`."""
    version = (await _request(url, "/api/version", GLANCE_TIMEOUT)).get("version", "")
    models = [
        _facts(name, await _request(url, "/api/show", body={"model": name})) for name in await digests(url)
    ]
    running = (await _request(url, "/api/ps", CATALOGUE_TIMEOUT)).get("models", ())
    loaded = tuple(LoadedModel.model_validate(model) for model in running)
    return Server(url=url, version=version, models=tuple(models), loaded=loaded)


def _facts(name: str, shown: dict[str, Any]) -> Facts:
    info, details = shown.get("model_info") or {}, shown.get("details") or {}
    family = info.get("general.architecture", "")
    return Facts(
        name=name,
        capabilities=frozenset(shown.get("capabilities") or ()),
        context_length=info.get(f"{family}.context_length", 0),
        embedding_length=info.get(f"{family}.embedding_length", 0),
        parameters=details.get("parameter_size", ""),
        quantization=details.get("quantization_level", ""),
        template=shown.get("template", ""),
    )


async def _request(
    url: str, path: str, patience: httpx.Timeout = CATALOGUE_TIMEOUT, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the JSON object of an answer, to a POST where there is a body; every failure says what to do."""
    try:
        async with httpx.AsyncClient(
            base_url=url, timeout=patience, verify=tls(url), headers=bearer()
        ) as client:
            answer = await client.request("POST" if body else "GET", path, json=body)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
    except httpx.HTTPStatusError as error:
        answer, model = error.response, body["model"] if body else ""
        raise refusal(answer.status_code, answer.text, url, model) from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise unreachable(url, error) from error
    except ValueError as error:
        raise stranger(url) from error
    if not isinstance(found, dict):
        raise stranger(url)
    return found
