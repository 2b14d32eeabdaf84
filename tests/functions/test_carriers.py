"""Every carrier passes the suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from stand_ins import STAND_INS, expected, vector
from suite import FunctionSuite

from benchmarks.serving.server import Refusal, Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.function import AsStored, EmbeddingFunction
from embaudit.embedders.object.carrier import ObjectFunction
from embaudit.embedders.opened import open_function

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
