"""Every carrier passes the suite."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from commands import run_here
from stand_ins import STAND_INS, expected, vector
from suite import FunctionSuite

from benchmarks.serving.server import Refusal, Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.function import AsStored, EmbeddingFunction
from embaudit.embedders.object.carrier import ObjectFunction
from embaudit.embedders.opened import open_function
from embaudit.words.errors import EmbauditError

CPU = LoadOptions(device="cpu")


class TestCheckpoint(FunctionSuite):
    @pytest.fixture
    def function(self, tiny: Checkpoint) -> EmbeddingFunction:
        return CheckpointFunction(tiny)


@pytest.mark.parametrize("api", ["openai", "tei", "ollama"])
class TestEndpoint(FunctionSuite):
    @pytest.fixture
    def function(self, api: str) -> Iterator[EmbeddingFunction]:
        def encode(texts: list[str]) -> np.ndarray:
            if any(not text.strip() for text in texts):
                raise Refusal(400, "empty text")
            return np.array([vector(text) for text in texts])

        with serving(Served(encode, api=api)) as address, open_endpoint(address) as endpoint:
            endpoint.wait_at_most = 0
            yield endpoint


@pytest.mark.parametrize("stored", ["int8", "binary", "as given"])
class TestAsStored(FunctionSuite):
    @pytest.fixture
    def function(self, tiny: Checkpoint, stored: Any) -> EmbeddingFunction:
        return AsStored(CheckpointFunction(tiny), stored, 16)


@pytest.mark.parametrize("name", STAND_INS)
class TestObject(FunctionSuite):
    @pytest.fixture
    def function(self, name: str) -> EmbeddingFunction:
        return open_function(STAND_INS[name][0], CPU)

    def test_is_recognised(self, function: EmbeddingFunction, name: str) -> None:
        _, interface, tells_apart = STAND_INS[name]
        assert interface in function.interface
        assert function.tells_roles_apart == tells_apart
        assert isinstance(function, ObjectFunction)

    @pytest.mark.parametrize("role", ["text", "query", "document"])
    def test_is_asked_for_each_role_in_its_own_way(self, function: EmbeddingFunction, name: str, role: Any) -> None:
        wanted = [expected(text, role if STAND_INS[name][2] else "text") for text in ("one", "two words")]
        assert np.allclose(function.encode(["one", "two words"], role).vectors, wanted, atol=1e-2)


class TestObjectThatIsSafe(FunctionSuite):
    """Several threads ask it."""

    lacks: ClassVar[dict[str, str]] = {}

    @pytest.fixture
    def function(self) -> EmbeddingFunction:
        return ObjectFunction(STAND_INS["LangChain"][0], takes_many_at_once=True)


@pytest.mark.parametrize("kind", ["static", "router"])
@pytest.mark.parametrize("where", ["memory", "folder"])
class TestPipeline(FunctionSuite):
    @pytest.fixture
    def function(
        self, kind: str, where: str, pipelines: dict[str, Any], saved_pipelines: dict[str, Path]
    ) -> EmbeddingFunction:
        return open_function(pipelines[kind] if where == "memory" else saved_pipelines[kind], CPU)


class TestPipelineThatReadsPadding(FunctionSuite):
    """A convolution over a text and its padding: what it gives depends on the batch."""

    READS_PADDING = "its convolution reads the padding of a batch"
    lacks: ClassVar[dict[str, str]] = dict.fromkeys(
        ("test_is_asked_in_batches_of_any_size", "test_takes_many_texts", "test_is_asked_by_several_at_once"),
        READS_PADDING,
    )

    @pytest.fixture
    def function(self, pipelines: dict[str, Any]) -> EmbeddingFunction:
        return open_function(pipelines["convolution"], CPU)


# ---- ``python:MODULE:NAME``: what is imported, from where, and what is said of what cannot be ----


MODULE = """
import hashlib

print("loading the model")


def vector(text):
    return [byte / 100 - 1.2 for byte in hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6]]


class Model:
    def embed_documents(self, texts):
        print("embedding", len(texts))
        return [vector(text) for text in texts]

    def embed_query(self, text):
        return vector(text)


def make():
    return Model()


def embed(texts):
    return [vector(text) for text in texts]


model = Model()
pair = (model, embed)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "my_model.py").write_text(MODULE, encoding="utf-8")
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["model", "Model", "make", "embed", "pair", "model.embed_documents"])
def test_an_object_in_the_current_folder_is_found(here: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    function = open_function(f"python:my_model:{name}", LoadOptions())
    assert function.name == f"python:my_model:{name}"
    assert ("made by calling it" in function.interface) == (name in ("Model", "make"))
    assert function.encode(["a", "b"]).vectors.shape == (2, 6)
    assert "loading the model" in capsys.readouterr().err
    # What is imported later does not find the files of this folder first.
    assert sys.path[0] != str(here)
    assert sys.path[-1] == str(here)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("python:my_model:modle", "", "my_model has no modle. Did you mean model"),
        ("python:my_modle:model", "", "no Python module my_modle: neither in .* Did you mean my_model"),
        ("python:my_model", "", "names no Python object. It is python:MODULE:NAME"),
        ("python:my_model.py:model", "", "There is no Python module my_model.py"),
        ("python:./my_model:model", "", "names no Python object"),
        ("python:bad:model", "import not_there_at_all", "needs not_there_at_all, which is not installed"),
        ("python:bad:model", "def f(:\n  pass", r"cannot be imported: .*bad.py, line 1"),
        (
            "python:bad:model",
            "raise OSError('no weights')",
            r"cannot be imported: OSError: no weights \(bad.py, line 1\)",
        ),
        ("python:bad:model", "import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("python:bad:model", "import not_there.at_all", "needs not_there, which is not installed"),
        ("python:bad:model", "def __getattr__(name): raise OSError('lazy')", "cannot be had: OSError: lazy"),
        ("python:bad:model", "def model(): raise OSError('gone')", r"model\(\) gives no object: OSError: gone"),
        ("python:bad:model", "def model(): return None", "a NoneType, offers nothing that gives vectors"),
    ],
)
def test_what_cannot_be_had_is_told(here: Path, name: str, content: str, said: str) -> None:
    (here / "bad.py").write_text(content)
    with pytest.raises(EmbauditError, match=said):
        open_function(name, LoadOptions())


def test_ctrl_c_while_it_is_imported_passes_through(here: Path) -> None:
    (here / "slow.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        open_function("python:slow:model", LoadOptions())


def test_the_command_line_takes_one_and_its_prints_break_no_json(here: Path) -> None:
    done = run_here(("check", "python:my_model:model", "--json"), dict(os.environ), here)
    result = json.loads(done.stdout)
    assert result["checkpoint"] == "python:my_model:model"
    assert (result["kind"], result["interface"]) == ("function", "LangChain's Embeddings, 6 dimensions")
    assert "Texts are sent" not in done.stderr
    done = run_here(("check", "python:my_model:model", "--max-length", "9"), dict(os.environ), here)
    assert done.returncode == 2
    assert "python:my_model:model is asked as it is: max_length cannot be set" in done.stderr
    done = run_here(("check", "python:my_model:model", "--api", "tei"), dict(os.environ), here)
    assert done.returncode == 2
    assert "is of an endpoint, and there is none" in done.stderr


def test_a_factory_may_give_a_model_of_sentence_transformers(here: Path) -> None:
    pytest.importorskip("sentence_transformers")
    tests = Path(__file__).parent
    (here / "static_model.py").write_text(
        f"import sys\nsys.path.append({str(tests)!r})\nsys.path.append({str(tests.parent)!r})\n"
        "from pathlib import Path\nfrom tiny_pipelines import pipeline\n\n\n"
        "def make():\n    return pipeline('static', Path())\n"
    )
    function = open_function("python:static_model:make", LoadOptions(device="cpu"))
    assert (function.kind, function.name) == ("pipeline", "python:static_model:make")
    assert "StaticEmbedding + Normalize, made by calling it" in function.interface
