"""`compose.yaml` and the Helm chart: closed by default, accepted by their tools, and in words we know."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mneme.core.settings import Settings

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
OPTION = re.compile(r"--[a-z][\w-]*")
EVERY = {"restart", "cap_drop", "security_opt", "logging"}


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_is_pinned_and_has_no_rights_that_it_can_do_without(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+[\w.-]*", service["image"])
    assert service.keys() >= EVERY
    assert service["cap_drop"] == ["ALL"] and not service.get("privileged")
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "no port is open to other machines"


def test_networks_volumes_and_what_is_waited_for_are_there() -> None:
    for service in SERVICES.values():
        assert set(service.get("networks", ())) <= set(COMPOSE["networks"])
        assert {each.split(":")[0] for each in service.get("volumes", ())} <= set(COMPOSE["volumes"])
        for other, wait in service.get("depends_on", {}).items():
            assert "healthcheck" in SERVICES[other] or wait["condition"] == "service_completed_successfully"
            assert wait.get("required", True) == ("profiles" not in SERVICES[other])
    assert COMPOSE["networks"]["data"]["internal"], "Qdrant and Postgres reach nothing outside"


def test_our_variables_are_settings_and_no_secret_is_written_down_or_asked_for() -> None:
    known = {f"MNEME_{field}".upper() for field in Settings.model_fields} | {"MNEME_SETTINGS"}
    assert {name for name in SERVICES["mneme"]["environment"] if name.startswith("MNEME_")} <= known
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            secret = re.search("KEY|PASSWORD", name)
            assert not secret or value is None or re.fullmatch(r"\$\{\w+:-\}|/secrets/\w+", value)
    assert ":?" not in TEXT, "it starts without .env"


@pytest.mark.parametrize("given", ["", "chosen"])
def test_passwords_are_made_once_and_handed_on(tmp_path: Path, given: str) -> None:
    """The scripts of the containers, with folders of ours in place of the volumes'."""
    secrets, data = tmp_path / "secrets", tmp_path / "data"
    secrets.mkdir()
    data.mkdir()
    environment = {
        **os.environ,
        "HOME": str(data),
        "MNEME_SETTINGS": str(data / "settings.env"),
        "POSTGRES_PASSWORD": given,
        "MNEME_LEDGER_API_KEY": given,
    }

    def run(name: str) -> None:
        (script,) = SERVICES[name]["command"]
        script = script.replace("$$", "$").replace("/secrets", str(secrets)).partition("exec ")[0]
        subprocess.run(["bash", "-ec", script], env=environment, check=True)

    run("secrets")
    made = {each.name: each.read_text() for each in secrets.iterdir()}
    assert made.keys() == {"postgres", "qdrant"}
    assert all(len(each) == 64 for each in made.values()) or set(made.values()) == {given}
    environment["POSTGRES_PASSWORD"] = "another"
    run("secrets")
    assert made == {each.name: each.read_text() for each in secrets.iterdir()}, "the database knows the first"
    run("mneme")
    assert (data / ".pgpass").read_text() == f"*:*:*:mneme:{made['postgres']}\n"
    assert (data / "settings.env").read_text() == f"MNEME_LEDGER_API_KEY={made['qdrant']}\n"
    assert {each.stat().st_mode & 0o777 for each in data.iterdir()} == {0o600}


def test_a_variable_that_is_asked_for_is_in_the_example() -> None:
    asked = set(re.findall(r"(?<!\$)\$\{(\w+)", TEXT)) | {
        name for name, value in SERVICES["mneme"]["environment"].items() if value is None
    }
    assert asked <= set(re.findall(r"^#(\w+)=", EXAMPLE, re.MULTILINE))


def test_the_image_and_the_service_start_the_server_with_options_that_it_has() -> None:
    (script,) = SERVICES["mneme"]["command"]
    program, command, *options = shlex.split(script.partition("exec ")[2].replace("\\\n", " "))
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for word in (program, command, *options):
        assert f'"{word}"' in dockerfile
    help_ = _help(Path(sys.executable).parent / program, command)
    assert {each.split("=")[0] for each in options} <= set(OPTION.findall(help_))


def test_commands_of_ours_that_are_written_down_are_there() -> None:
    page = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    written = set(re.findall(r"exec (?:-\S+ )?mneme mneme (\w+) (\w+)", TEXT + page))
    assert ("users", "add") in written
    for group, command in sorted(written):
        assert command in _help(sys.executable, "-m", "mneme", group)


def _help(*command: object) -> str:
    done = subprocess.run(
        [*map(str, command), "--help"], capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout


def test_every_part_of_the_image_is_in_what_docker_is_sent() -> None:
    sent = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    links = {path.name for path in (ROOT / "mneme").iterdir() if path.is_symlink()}
    built = {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "langgraph.json", "mneme"}
    assert sent == built | links


def test_an_address_with_a_layout_and_without() -> None:
    def location(**given: Any) -> str:
        return Settings(_env_file=None, **given).ledger_location

    log, index = "postgresql://d/m", "http://q:6333"
    assert location(ledger=log, index=index, qdrant_replicas=3, qdrant_shards=6) == (
        f"{log}|{index}?shards=6&replicas=3"
    )
    asked = location(ledger=log, index=f"{index}?replicas=2", qdrant_replicas=3)
    assert asked.endswith("?replicas=3&replicas=2")
    assert location(ledger="folder", qdrant_replicas=3) == "folder"


def tool(program: str) -> list[str]:
    """Return a tool's command: the words of its variable, else the program on the PATH; skip without one."""
    variable = f"MNEME_TEST_{program.rpartition('-')[2].upper()}"
    if words := os.environ.get(variable) or shutil.which(program):
        return shlex.split(words)
    pytest.skip(f"{variable} is unset and there is no {program} on the PATH")


@pytest.mark.parametrize("profile", ["", "cpu", "gpu"])
def test_compose_accepts_the_file_without_a_setting(profile: str) -> None:
    started = {"secrets", "mneme", "qdrant", "postgres"}
    with_ollama = {"": set(), "cpu": {"ollama", "model"}, "gpu": {"ollama-gpu", "model"}}[profile]
    given = ["--env-file", os.devnull, "--project-directory", ROOT, "--profile", profile or "none"]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    done = _output([*tool("docker-compose"), *given, "config"], environment)
    assert yaml.safe_load(done)["services"].keys() == started | with_ollama


CHART = ROOT / "deploy" / "helm"
OLDEST = "1.27.0"
"""The oldest Kubernetes that the chart takes."""


@pytest.mark.parametrize(
    ("values", "answers"),
    [
        ("replicas=2", "ollama:llama3.1:8b"),
        ("image.repository=REGISTRY/mneme-agents,qdrant.urls=http://qdrant:6333", "ollama:llama3.1:8b"),
        ("ollama.enabled=false,ollama.url=http://models:11434,model=other", "ollama:other"),
        ("ollama.enabled=false,env.MNEME_AUTO=openai:NAME,envFrom[0].secretRef.name=keys", "openai:NAME"),
        ("ollama.enabled=false,replicas=1", None),
        ("ollama.gpus=0,storageClass=fast,env.MNEME_AUTO=ollama:other", "ollama:other"),
    ],
)
def test_helm_renders_the_chart_and_the_model_answers(
    values: str, answers: str | None, tmp_path: Path
) -> None:
    helm, given = tool("helm"), [CHART, "--set", values]
    _output([*helm, "lint", "--strict", *given])
    rendered = _output([*helm, "template", "ours", *given, "--kube-version", OLDEST])
    made = {f"{each['kind']} {each['metadata']['name']}": each for each in yaml.safe_load_all(rendered)}
    assert ("StatefulSet ours-ollama" in made) is ("ollama.enabled=false" not in values)
    [container] = made["StatefulSet ours"]["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert len(environment) == len(container["env"])
    assert environment.get("MNEME_AUTO") == answers
    (tmp_path / "rendered.yaml").write_text(rendered)
    _output([*tool("kubeconform"), "-strict", "-kubernetes-version", OLDEST, tmp_path / "rendered.yaml"])


def _output(command: list[Any], environment: dict[str, str] | None = None) -> str:
    """Return what a tool prints; it has nothing to complain of."""
    done = subprocess.run(
        [*map(str, command)], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert not done.returncode and not done.stderr, done.stdout + done.stderr
    return done.stdout


def test_the_chart_names_our_settings_our_version_and_the_same_images() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    servers = (CHART / "templates" / "servers.yaml").read_text(encoding="utf-8")
    known = {f"MNEME_{field}".upper() for field in Settings.model_fields}
    named = set(re.findall(r"MNEME_\w+", servers))
    assert named <= known
    assert named >= {"MNEME_LEDGER", "MNEME_INDEX", "MNEME_CHECKPOINTS", "MNEME_AUTH"}
    assert values["ollama"]["image"] == SERVICES["ollama"]["image"]
    assert f"mneme-agents:{chart['appVersion']}" == SERVICES["mneme"]["image"]
    assert values["image"]["tag"] == chart["appVersion"]
    assert "runAsNonRoot: true" in servers and "drop: [ALL]" in servers
