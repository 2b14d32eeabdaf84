"""Servers that none of us wrote, each in an environment of its own, of the packaged checkpoint.

What they do was found by parity: infinity serves the checkpoint as it is declared; fastembed and transformers.js read
512 tokens where it declares 256, and transformers.js cuts the end token off longer texts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from onnx_files import write_onnx
from ports import running_server
from real_tokenizers import packaged_checkpoint

import embaudit
from embaudit.checkpoint import LoadOptions, load_checkpoint

HERE = Path(__file__).with_name("real_servers")
INFINITY = ("infinity-emb[torch,server]==0.0.78", "torch==2.13.0")
FASTEMBED = ("fastembed==0.9.1",)
TRANSFORMERS_JS = "@huggingface/transformers@4.3.1"
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "OMP_NUM_THREADS": "2"}
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real servers")]


def had(command: list[str], **options: object) -> None:
    """Run a command of a package manager; skip the test where the packages cannot be had."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, **options)  # type: ignore[call-overload]
    if done.returncode:
        pytest.skip(f"needs packages that cannot be installed here: {done.stderr.strip().splitlines()[-1]}")


def environment(folder: Path, packages: tuple[str, ...]) -> Path:
    """The Python of a new environment with these packages."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    had([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    return python


@pytest.fixture(scope="session")
def onnx_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged checkpoint's tokenizer and settings, with its transformer as ONNX."""
    place = tmp_path_factory.mktemp("onnx")
    source, folder = packaged_checkpoint(), place / "models" / "minilm"
    (folder / "onnx").mkdir(parents=True)
    for file in [*source.glob("*.json"), source / "vocab.txt"]:
        shutil.copy(file, folder)
    write_onnx(load_checkpoint(str(source), LoadOptions(device="cpu")), folder / "model.onnx")
    (folder / "onnx" / "model.onnx").symlink_to(folder / "model.onnx")
    return folder


@pytest.fixture(scope="session")
def fastembed_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("fastembed") / "environment", FASTEMBED)


def test_infinity_serves_what_is_declared(tmp_path: Path) -> None:
    python = environment(tmp_path / "infinity", INFINITY)
    command = [
        str(python.with_name("infinity_emb")),
        "v2",
        "--model-id",
        str(packaged_checkpoint()),
        "--engine",
        "torch",
    ]
    command += ["--device", "cpu", "--port", "PORT", "--no-bettertransformer"]
    with running_server(command, "/health", tmp_path / "server.log", env=ENVIRONMENT, cwd=tmp_path) as address:
        report = embaudit.parity("packaged:all-MiniLM-L6-v2", address)
    assert report.line == "The same function."
    assert max(kind.worst for kind in report.kinds) <= 1e-5


def test_fastembed_reads_other_lengths(tmp_path: Path, onnx_folder: Path, fastembed_python: Path) -> None:
    command = [str(fastembed_python), str(HERE / "fastembed_server.py"), str(onnx_folder), "PORT"]
    with running_server(command, "/v1/models", tmp_path / "server.log", env=ENVIRONMENT, cwd=tmp_path) as address:
        report = embaudit.parity("packaged:all-MiniLM-L6-v2", address)
        verified = embaudit.verify(embaudit.passport("packaged:all-MiniLM-L6-v2"), address)
    assert verified.differing == ("beyond the limit",)
    assert report.verdict == "another function"
    assert report.explanation is not None
    assert report.explanation.is_complete
    assert report.explanation.sentences == ("reads 512 tokens",)


def test_onnx_with_the_declared_limit_passes_by_its_passport(
    tmp_path: Path, onnx_folder: Path, fastembed_python: Path
) -> None:
    folder = Path(shutil.copytree(onnx_folder, tmp_path / "onnx", symlinks=False))
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"model_max_length": 256, "max_length": 256}))
    command = [str(fastembed_python), str(HERE / "fastembed_server.py"), str(folder), "PORT"]
    with running_server(command, "/v1/models", tmp_path / "server.log", env=ENVIRONMENT, cwd=tmp_path) as address:
        report = embaudit.verify(embaudit.passport("packaged:all-MiniLM-L6-v2"), address)
    assert report.line == "The same function."
    assert max(kind.worst for kind in report.kinds) <= 1e-5


def test_transformers_js_cuts_the_end_token(tmp_path: Path, onnx_folder: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs Node and npm")
    skipped = {**os.environ, "ONNXRUNTIME_NODE_INSTALL": "skip"}
    had(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", TRANSFORMERS_JS], cwd=tmp_path, env=skipped)
    shutil.copy(HERE / "transformers_server.mjs", tmp_path)
    command = ["node", "transformers_server.mjs", str(onnx_folder.parent), onnx_folder.name, "PORT"]
    with running_server(command, "/v1/models", tmp_path / "server.log", env=ENVIRONMENT, cwd=tmp_path) as address:
        report = embaudit.parity("packaged:all-MiniLM-L6-v2", address)
    assert report.explanation is not None
    assert report.explanation.is_complete
    assert report.explanation.sentences == ("cuts after 512 tokens, and so the end token of longer texts",)
