"""Agents of one's own that are known by name: a YAML file each in the home folder."""

from pathlib import Path

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput
from mneme.core.private import make_private_folder
from mneme.core.settings import settings
from mneme.core.yaml_files import read_yaml, text_of
from mneme.library.agents.agent import AGENTS, Agent

AGENT_EXAMPLE = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")
"""The file of an agent, with `{name}` for its name."""


PARTED = "\n---\n"
"""Separator of the documents of a YAML text."""


def own_agents() -> list[str]:
    """Return the names of one's own agents."""
    return sorted(each.stem for each in _folder().glob("*.yaml"))


def own_text(name: str) -> str | None:
    """Return the YAML text of a user's own agent; None if there is none of that name."""
    return text_of(_folder() / f"{name}.yaml") if name in own_agents() else None


def own_texts(domain: str = "") -> str:
    """Return the YAML texts of one's own agents, of all domains or of one, as documents of one text."""
    found = {name: own_text(name) or "" for name in own_agents()}
    members = [text for name, text in found.items() if domain in {"", read_yaml(text, Agent, name).domain}]
    return PARTED.join(members)


def save_agent(text: str, where: str, *, replace: bool = False) -> Agent:
    """Save an agent under its name. Raises BadInput for an invalid text, and for a name that exists."""
    agent = read_yaml(text, Agent, where)
    if agent.name in AGENTS:
        raise BadInput(f"{agent.name} is the name of a shipped agent.", "Give yours another name.")
    if agent.name in own_agents() and not replace:
        raise BadInput(f"There is an agent {agent.name} already.", "--replace puts this one in its place.")
    make_private_folder(_folder())
    write_durably(_folder() / f"{agent.name}.yaml", text)
    return agent


def _folder() -> Path:
    return settings().home / "agents"


def agent_text(name_or_file: str) -> str:
    """Return the context's value: a shipped agent's name, or the text of one's own or of a YAML file.

    Raises BadInput naming the file and the line where it describes no agent.
    """
    if (own := own_text(name_or_file)) is not None:
        return own
    if name_or_file in AGENTS or Path(name_or_file).suffix not in {".yaml", ".yml"}:
        return name_or_file
    text = text_of(Path(name_or_file))
    read_yaml(text, Agent, name_or_file)  # only checked: the context carries plain text
    return text
