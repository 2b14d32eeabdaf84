"""``python:MODULE:NAME``: what is imported, from where, and what is said of what cannot be."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_here

from embaudit.checkpoint import LoadOptions
from embaudit.embedders.opened import open_function
from embaudit.words.errors import EmbauditError

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
