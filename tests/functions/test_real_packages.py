"""Objects of the packages themselves, each in an environment of its own, asked as embaudit asks them.

Their versions are those that this was tried with.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from stand_ins import vector
from suite import FunctionSuite

import embaudit
from benchmarks.serving.server import Served, serving
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.embedders.parts import Unanswered, encode_in_parts
from embaudit.words.errors import EmbauditError

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

HERE = Path(__file__).with_name("real_packages")
CHECKOUT = HERE.parents[2]
PACKAGES = {
    "langchain": ("langchain-core==1.8.4", "langchain-openai==1.7.4"),
    "llama_index": ("llama-index-core==0.14.25",),
    "haystack": ("haystack-ai==3.4.1",),
    "chroma": ("chromadb==1.5.9",),
    "model2vec": ("model2vec==0.10.0",),
}
# What embaudit imports to ask an object.
ASKING = ("numpy", "scipy", "pydantic")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("real packages")]


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where environments are made; those in EMBAUDIT_TEST_ENVIRONMENTS are kept, and used again."""
    kept = os.environ.get("EMBAUDIT_TEST_ENVIRONMENTS")
    return Path(kept) if kept else tmp_path_factory.mktemp("environments")


def environment(folder: Path) -> Path:
    """The Python of an environment with a package; a test is skipped where its packages cannot be had."""
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if not (folder / "done").exists():
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*install, *PACKAGES[folder.name], *ASKING], capture_output=True, text=True, timeout=1_200
        )
        if done.returncode:
            pytest.skip(f"needs packages that cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
        (folder / "done").touch()
    return python


class Elsewhere(EmbeddingFunction):
    """An object that another process asks as ``ObjectFunction``, a line a request."""

    kind = "function"
    takes_many_at_once = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        for name, value in self._line().items():
            setattr(self, name, value)

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        def ask(some: list[str]) -> list[np.ndarray]:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"role": role, "texts": some}) + "\n")
            self._process.stdin.flush()
            answer = self._line()
            if answer.get("failures") or "error" in answer:
                raise Unanswered(answer.get("error") or next(iter(answer["failures"].values())))
            return [np.array(row) for row in answer["vectors"]]

        answers = encode_in_parts(
            ask, texts, most or 64, 1, dimension=self.dimension, gone=lambda failed: EmbauditError(str(failed))
        )
        self.dimension = self.dimension or answers.vectors.shape[1] or None
        return answers

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the other process has ended"
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def asked(python: Path, name: str, address: str = "") -> Iterator[EmbeddingFunction]:
    process = subprocess.Popen(
        [str(python), str(HERE / "ask.py"), name, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "False"},
    )
    try:
        yield Elsewhere(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


# Part of what the object of each environment is recognised as.
OBJECTS = {
    "langchain": "LangChain's Embeddings",
    "llama_index": "LlamaIndex's embedding",
    "haystack": "Haystack's text embedder for queries, Haystack's document embedder for documents",
    "chroma": "Chroma's embedding function",
    "model2vec": "encode, as model2vec",
}


Running = Callable[[str], EmbeddingFunction]


@pytest.fixture(scope="module")
def running(environments: Path) -> Iterator[Running]:
    """The object of an environment, in one process for all tests."""
    with ExitStack() as stack:
        yield functools.cache(lambda name: stack.enter_context(asked(environment(environments / name), name)))


@pytest.mark.parametrize("name", OBJECTS)
class TestRealPackage(FunctionSuite):
    lacks: ClassVar[dict[str, str]] = {}

    @pytest.fixture
    def function(self, name: str, running: Running) -> EmbeddingFunction:
        function = running(name)
        assert OBJECTS[name] in function.interface
        return function


def served(texts: list[Any]) -> np.ndarray:
    """A model behind OpenAI's API; ids of tokens it reads as those of its own vocabulary, as servers do."""
    return np.array([vector(text if isinstance(text, str) else "".join(map(chr, text))) for text in texts])


def test_langchains_openai_client_sends_ids_that_a_server_of_another_model_misreads(environments: Path) -> None:
    python = environment(environments / "langchain")
    with serving(Served(served)) as address, open_endpoint(address) as endpoint:
        with asked(python, "langchain_openai", address) as by_default:
            report = embaudit.parity(endpoint, by_default)
        assert report.verdict == "another function", report.line
        with asked(python, "langchain_openai_texts", address) as of_texts:
            report = embaudit.parity(endpoint, of_texts)
        assert report.verdict == "the same function", report.line


def test_haystacks_openai_embedders_are_what_the_server_gives(environments: Path) -> None:
    python = environment(environments / "haystack")
    with (
        serving(Served(served)) as address,
        open_endpoint(address) as endpoint,
        asked(python, "haystack_openai", address) as function,
    ):
        report = embaudit.parity(endpoint, function)
    assert report.verdict == "the same function", report.line
