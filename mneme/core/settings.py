"""Folders, addresses and default models, read from the environment, `.env` and the person's own file."""

import asyncio
import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlencode, urlsplit

from platformdirs import user_cache_path, user_config_path, user_data_path
from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from mneme.core.errors import BadInput


def _address(text: str) -> str:
    """Return a server's address without its trailing slash. Raises ValueError if it is not an address."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError("this is not an address")
    return text.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]


class Settings(BaseSettings):
    """Settings of a whole process; the settings of one run are in the graph's context."""

    # Empty counts as unset: compose passes on variables that nobody set.
    model_config = SettingsConfigDict(env_prefix="MNEME_", env_ignore_empty=True, extra="ignore")

    home: Path = Field(
        default_factory=lambda: user_data_path("mneme"),
        description="Folder of your memories, checkpoints and runs.",
    )
    cache: Path = Field(
        default_factory=lambda: user_cache_path("mneme"),
        description="Folder of notes that can be lost: when the embedder could not be installed.",
    )
    ledger: str = Field(
        "", description="Ledger: a folder, or a Postgres URL, with an index. Default: HOME/ledger."
    )
    index: str = Field(
        "",
        description="Index of the ledger for teams: a Qdrant URL (of a cluster: several, with commas). "
        "Not set: in the ledger's folder.",
    )
    ledger_api_key: SecretStr = Field(SecretStr(""), description="Key of the Qdrant server.")
    qdrant_shards: int | None = Field(
        None, ge=1, description="Shards of a new index on a Qdrant cluster; not set: one for each node."
    )
    qdrant_replicas: int | None = Field(
        None, ge=1, description="Nodes that have each shard of a new index; not set: one."
    )
    qdrant_writes: int | None = Field(
        None,
        ge=1,
        description="Replicas that must take a write before it counts; not set: more than half of them.",
    )
    checkpoints: str = Field(
        "", description="Checkpoints: an SQLite file, or a Postgres URL. Default: HOME/checkpoints.sqlite."
    )
    checkpoint_turns: int = Field(
        20, ge=0, description="Turns of a thread whose checkpoints are kept, to go back to; 0 keeps all."
    )
    embedder: str = Field(
        "bundled",
        description="`bundled`, `multilingual`, `ollama:<model>`, or `NAME:…` of an entry point.",
    )
    prompts: Path | None = Field(
        None, description="Folder of wordings of your own; see `mneme prompts export`."
    )
    ollama_url: Address = Field("http://127.0.0.1:11434", description="Ollama's address.")
    upstream: Address | Literal[""] = Field(
        "", description="Whose models answer chat completions, such as https://…/v1. Default: Ollama's."
    )
    upstream_key: SecretStr = Field(
        SecretStr(""), description="Key for it; not set, on a server without users: the client's own."
    )
    model: str = Field("llama3.1:8b", description="The Ollama model that `auto` looks for.")
    auto: str = Field(
        "",
        description="Who answers for `auto`: rules, or <provider>:<model>. "
        "Not set: the model in Ollama, else rules.",
    )
    num_ctx: int = Field(16384, ge=512, description="Context window of every Ollama model, in tokens.")
    parallel: int = Field(
        1, ge=1, description="Requests that a model server handles at once (OLLAMA_NUM_PARALLEL)."
    )
    keep_alive: str = Field("30m", description="How long Ollama keeps a model loaded after a call.")
    first_token_seconds: float = Field(
        300, gt=0, description="Seconds to wait for the first token; loading a model takes a minute."
    )
    idle_seconds: float = Field(60, gt=0, description="Seconds to wait between two tokens.")
    reply_seconds: float = Field(
        600, gt=0, description="Seconds that a reply may take after its first token."
    )
    retries: int = Field(4, ge=0, description="Retries of a call whose connection failed.")
    retry_seconds: float = Field(0.5, ge=0, description="Seconds before the first retry; doubled each time.")
    waiting_messages: int = Field(
        5000, ge=1, description="Messages of one user that may wait to be remembered."
    )
    waiting_bytes: int = Field(
        10_000_000, ge=1, description="Bytes of one user's messages that may wait to be remembered."
    )
    auth: Path | None = Field(
        None, description="File of users and hashed keys; not set: one person, this machine only."
    )
    roles: Path | None = Field(
        None, description="File that says who may do what with teams that several users share."
    )
    key: SecretStr = Field(SecretStr(""), description="Your key for a server that authenticates.")
    data: Path | None = Field(
        None, description="Folder of benchmark files that are not shipped; memories are in `home`."
    )

    @property
    def ledger_location(self) -> str:
        """The places of the ledger's log and index, see `addresses`; an index's own options come last."""
        place = self.ledger or str(self.home / "ledger")
        if not self.index:
            return place
        layout = {
            "shards": self.qdrant_shards,
            "replicas": self.qdrant_replicas,
            "writes": self.qdrant_writes,
        }
        chosen = {name: count for name, count in layout.items() if count}
        address, _, options = self.index.partition("?")
        layout_of = "&".join(filter(None, (urlencode(chosen), options)))
        return f"{place}|{address}?{layout_of}" if layout_of else f"{place}|{address}"

    @property
    def checkpoints_location(self) -> str:
        return self.checkpoints or str(self.home / "checkpoints.sqlite")


def settings_file() -> Path:
    """Return the file of a person's settings, which `mneme setup` writes; `.env` and variables go before.

    The variable MNEME_SETTINGS names another one.
    """
    return Path(os.environ.get("MNEME_SETTINGS") or user_config_path("mneme") / "settings.env")


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the process's settings, read once; tests call `settings.cache_clear()`. Raises BadInput."""
    try:
        return Settings(_env_file=(settings_file(), ".env"))
    except ValidationError as error:
        first = error.errors()[0]
        name, field = f"MNEME_{first['loc'][0]}".upper(), Settings.model_fields[str(first["loc"][0])]
        wrong = f"{name}={first['input']}: {first['msg'].removeprefix('Value error, ')}."
        default = "" if field.default in {None, ""} else f" Default: {field.default}."
        raise BadInput(wrong, f"{field.description}{default}") from error


async def read_settings() -> Settings:
    """Return the settings; the first call reads `.env` in a thread, so that the event loop is not blocked."""
    return settings() if settings.cache_info().currsize else await asyncio.to_thread(settings)
