"""Options that several evaluations have, and who answers in one.

An evaluation's `Options` make its command line: a field `context_tokens` is `--context-tokens`, and a list
`sizes` is `--size`, which may be repeated. In `json_schema_extra`, `option` gives another name, and
`variable` an environment variable that sets the option.
"""

import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.report import Journal, Row, open_journal
from mneme.models.asking.asking import resolve
from mneme.models.asking.responders import check
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.models.ollama import catalogue


class Identity(BaseModel):
    """A responder, with the digest of its weights if Ollama reports it."""

    responder: str
    digest: str = ""

    @property
    def is_model(self) -> bool:
        return self.responder != "rules"

    def __str__(self) -> str:
        return f"{self.responder} ({self.digest[:12]})" if self.digest else self.responder


async def identify(who: str) -> Identity:
    """Return the responder of a setting, determined once for the whole run.

    Raises `ModelUnavailable` if Ollama is chosen and cannot answer.
    """
    responder = await resolve(who)  # `auto` would name two models in one run if Ollama starts midway
    provider, _, model = responder.partition(":")
    if provider != "ollama":  # others report no digest of weights
        await check(responder)
        return Identity(responder=responder)
    url = settings().ollama_url
    await catalogue.facts(url, model)
    digests = await catalogue.digests(url)
    # Ollama lists a model that is named without a tag as `:latest`.
    return Identity(responder=responder, digest=digests.get(model) or digests.get(f"{model}:latest", ""))


RUNS_FOLDER = Path("runs")

Agents = Annotated[
    str,
    Field(
        description="Who answers: auto, rules, ollama:MODEL, …",
        json_schema_extra={"variable": "MNEME_AGENTS"},
    ),
]
AgentsCompared = Annotated[
    list[str],
    Field(
        min_length=1,
        description="Who answers: auto, rules, ollama:MODEL, …; several are compared.",
        json_schema_extra={"option": "agents", "variable": "MNEME_AGENTS"},
    ),
]
Role = Annotated[str, Field(description="Model of this role; default: --agents.")]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Jobs = Annotated[
    int, Field(ge=0, description="Processes at once; 0: one per core, for a model MNEME_PARALLEL.")
]


def jobs_of(given: int, uses_model: bool) -> int:
    """Return the number of processes: the given one, or one that fits the responder."""
    # A model waits for its server, rules for a core.
    return given or (settings().parallel if uses_model else os.cpu_count() or 1)


class JournalOptions(BaseModel):
    """Options of every evaluation: the folder of the results."""

    out: Annotated[Path, Field(description="Folder of raw results and plots.")] = RUNS_FOLDER
    fresh: Annotated[bool, Field(description="Start anew instead of going on.")] = False

    def journal(self, name: str, configuration: Row) -> Journal:
        """Open the journal of a configuration, with the cases that an interrupted run has finished."""
        return open_journal(self.out, name, configuration, fresh=self.fresh)


class RunOptions(JournalOptions):
    """Options of every evaluation with a ledger: also its embedder."""

    embedder: str = Field("", description="Embedder of the ledger; default: the settings'.")

    async def opened_embedder(self) -> Embedder:
        return await open_embedder(self.embedder or settings().embedder)
