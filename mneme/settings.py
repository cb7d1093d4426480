"""Where things are and who answers by default, read from the environment and `.env`."""

import asyncio
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path, user_data_path
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from mneme.errors import BadInput


class Settings(BaseSettings):
    """What the environment decides for a whole process; a graph's context decides per run."""

    model_config = SettingsConfigDict(
        env_prefix="MNEME_", env_file=".env", env_ignore_empty=True, extra="ignore"
    )

    home: Path = Field(
        default_factory=lambda: user_data_path("mneme"),
        description="Folder that holds the ledger and the checkpoints.",
    )
    cache: Path = Field(
        default_factory=lambda: user_cache_path("mneme"),
        description="Folder of what can be made again: the exported embedder.",
    )
    ledger: str = Field("", description="Ledger: a folder, or a Qdrant URL. Default: HOME/ledger.")
    ledger_api_key: SecretStr = Field(SecretStr(""), description="Key of the Qdrant server.")
    checkpoints: str = Field(
        "", description="Checkpoints: an SQLite file, or a Postgres URL. Default: HOME/checkpoints.sqlite."
    )
    embedder: str = Field("bundled", description="`bundled`, or `ollama:<model>`.")
    ollama_url: str = Field("http://127.0.0.1:11434", description="Ollama's address.")
    model: str = Field("llama3.1:8b", description="The Ollama model that `auto` looks for.")
    num_ctx: int = Field(16384, ge=512, description="Context window of every Ollama model, in tokens.")
    parallel: int = Field(1, ge=1, description="Requests an endpoint serves at once (OLLAMA_NUM_PARALLEL).")
    keep_alive: str = Field("30m", description="How long Ollama keeps a model loaded after a call.")
    first_token_seconds: float = Field(
        300, gt=0, description="Wait for a first token; a cold load takes a minute."
    )
    idle_seconds: float = Field(60, gt=0, description="Wait between two tokens.")
    retries: int = Field(4, ge=0, description="Repetitions of a call that failed in transport.")
    retry_seconds: float = Field(
        0.5, ge=0, description="Wait before the first repetition; it doubles each time."
    )
    auth: Path | None = Field(
        None, description="File of users and hashed keys; unset: one person, loopback only."
    )
    key: SecretStr = Field(SecretStr(""), description="Your key for a server that authenticates.")
    data: Path | None = Field(None, description="Folder of benchmark files that are not shipped.")

    @property
    def ledger_location(self) -> str:
        return self.ledger or str(self.home / "ledger")

    @property
    def checkpoints_location(self) -> str:
        return self.checkpoints or str(self.home / "checkpoints.sqlite")


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the process's settings, read once; tests call `settings.cache_clear()`. Raises BadInput."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"MNEME_{first['loc'][0]}".upper()
        raise BadInput(f"{name}={first['input']}: {first['msg']}.", "See .env.example.") from error


async def read_settings() -> Settings:
    """Return the settings without blocking the event loop, as the first reading of `.env` would."""
    return settings() if settings.cache_info().currsize else await asyncio.to_thread(settings)
