"""What Mneme is once it is installed: the files of its wheel, and what it needs from others."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions, requires
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mneme.core.errors import DISTRIBUTION, MnemeError, needs
from mneme.models.embedding.absent import BUNDLED
from tests.test_house import modules, room

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FIRST_RUN = ("api", "cli", "client", "graphs", "models", "nodes", "prompts", "rules")
"""Rooms all of whose modules load without any extra."""
REFUSE = "import sys; sys.modules.update(dict.fromkeys({refused}))\n"
"""Makes packages look as if they were not installed, to `find_spec` too."""

Names = set[str]
TRAINING = Path("mneme/evals/chat/data/training")
"""What the English answerer was trained on; who trains it again has the sources."""


def test_a_wheel_made_from_the_sources_has_all_files_of_the_package_alone(tmp_path: Path) -> None:
    checkout, out = tmp_path / "checkout", tmp_path / "out"
    skipped = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=skipped)
    python("-c", "from setuptools.build_meta import build_sdist as make; make('.')", folder=checkout)
    alone = ("--no-deps", "--no-build-isolation", "--no-index")
    python("-m", "pip", "wheel", *alone, "--wheel-dir", str(out), *map(str, checkout.glob("*.tar.gz")))
    with ZipFile(next(out.glob("*.whl"))) as opened:
        found = {name for name in opened.namelist() if ".dist-info/" not in name}
    walked = os.walk(checkout / "mneme", followlinks=True)
    files = {Path(folder, name).relative_to(checkout) for folder, _, names in walked for name in names}
    assert found == {str(each) for each in files if TRAINING not in each.parents}


def python(*words: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_imported_is_declared() -> None:
    extras = (each for extra, brought in EXTRAS.items() if extra != "dev" for each in brought)
    declared = named([*PROJECT["dependencies"], *BUNDLED.requirements, *extras])
    wanted = {name: file for file in modules().values() for name in foreign(file)}
    missing = {name: str(file) for name, file in wanted.items() if not declared & providers(name)}
    assert missing == {}


def test_a_first_run_needs_no_extra() -> None:
    """Refuse what only extras bring, and load every module of the rooms that a first run uses."""
    needed = closure(PROJECT["dependencies"])
    refused = {name for name in distributions() if not needed & providers(name)}
    assert {"matplotlib", "qdrant_client", "scipy", "starlette", "torch", "unified_planning"} <= refused
    loaded = [name for name in modules() if room(name) in FIRST_RUN]
    python("-c", REFUSE.format(refused=refused - {"mneme"}) + f"import {', '.join(loaded)}")


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(MnemeError, match="Juggling needs no_such_package") as failure, needs("Juggling", "x"):
        import_module("no_such_package")
    assert failure.value.hint == 'Install it: pip install "mneme-agents[x]"'


def test_the_extras_that_are_hinted_at_exist() -> None:
    calls = [
        node
        for file in modules().values()
        for node in nodes(file)
        if isinstance(node, ast.Call) and called(node) in {"needs", "install_hint"}
    ]
    hinted = {each.args[-1].value for each in calls if isinstance(each.args[-1], ast.Constant)}
    assert hinted and hinted <= set(EXTRAS)


def test_licences_that_ask_more_than_to_be_named_are_told() -> None:
    text = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line][2:]
    told = {name: where.strip("[`]") for names, _, where in rows for name in names.split(", ")}
    everywhere = closure(PROJECT["dependencies"])
    brings = {extra: closure(brought) - everywhere for extra, brought in EXTRAS.items()}
    brings["every installation"] = everywhere
    found = {name for name in set().union(*brings.values()) - closure(["torch"]) if asks_more(name)}
    assert found == told.keys() - closure(["torch"])
    assert {name: where for name, where in told.items() if name not in brings[where]} == {}


def asks_more(name: str) -> bool:
    """Return whether a distribution's licence is not one of those that only want to be named."""
    try:
        told = metadata(name)
    except PackageNotFoundError:
        return False
    marks = [each for each in told.get_all("Classifier", []) if each.startswith("License")]
    named_by = (told[key] for key in ("License-Expression", "License") if key in told)
    words = [*marks, *(each for each in named_by if len(each) < 100)]  # some give the whole text
    return re.search(r"GPL|MPL|Mozilla|Elastic|Proprietary", " ".join(words)) is not None


def test_what_is_declared_is_pinned_within_its_bounds() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    declared = map(Requirement, [*PROJECT["dependencies"], *chain(*EXTRAS.values()), *BUNDLED.requirements])
    for each in (each for each in declared if each.name != DISTRIBUTION):
        assert len(each.specifier) > 0, f"{each.name} has no lower bound"
        assert each.specifier.contains(versions[canonicalize_name(each.name)]), each


def test_what_is_pinned_has_its_sum() -> None:
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    summed = (ROOT / ".ci/hashes.txt").read_text(encoding="utf-8").splitlines()
    known = {canonicalize_name(line.partition(" --hash=sha256:")[0]) for line in summed}
    assert {canonicalize_name(line) for line in pinned if not line.startswith("torch==")} == known


@cache
def nodes(file: Path) -> list[ast.AST]:
    """Return what a module imports and calls; to read all modules takes seconds."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom | ast.Call)]


def foreign(file: Path) -> Iterator[str]:
    """Yield the packages of others that a module imports, by name too."""
    for node in nodes(file):
        for name in imported(node):
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top != "mneme":
                yield top


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    if not isinstance(node, ast.Call) or called(node) != "import_module":
        return []
    return [str(each.value) for each in node.args if isinstance(each, ast.Constant)]


def called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


@cache
def distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def providers(module: str) -> Names:
    """Return the distributions that a top-level module may come from."""
    return {canonicalize_name(each) for each in distributions().get(module, [module])}


def named(requirements: Iterable[str]) -> Names:
    """Return the distributions that requirements name, and those that their extras add."""
    found = [Requirement(each) for each in requirements]
    extras = (more for each in found for extra in each.extras for more in brought(each.name, extra))
    return {canonicalize_name(each.name) for each in found}.union(*(named([each]) for each in extras))


def closure(requirements: Iterable[str]) -> Names:
    """Return the distributions that requirements bring, directly or not."""
    found, waiting = Names(), named(requirements)
    while new := waiting - found:
        found |= new
        waiting = named(each for name in new for each in brought(name, ""))
    return found


@cache
def brought(name: str, extra: str) -> list[str]:
    """Return what a distribution, or one of its extras, asks for here; nothing where it is not installed."""
    if name == DISTRIBUTION:
        return EXTRAS.get(extra, [])
    try:
        every = [Requirement(each) for each in requires(name) or []]
    except PackageNotFoundError:
        return []
    markers = ((str(each), each.marker) for each in every)
    return [text for text, marker in markers if (marker.evaluate({"extra": extra}) if marker else not extra)]
