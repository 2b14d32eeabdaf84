"""What holds of every embedding function: inherit ``FunctionSuite`` in a test file and say how yours is opened.

What a carrier cannot do is a mark on the test (``lacks``): it says why, and fails when it has become wrong.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import pytest

from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.material import Material
from embaudit.questions.check.served import check_served

TEXTS = [
    "The museum opens at nine.",
    "A river runs through the old town",
    "one",
    "Ein Fluß fließt durch die Stadt",
    "博物馆九点开门",
    "Κάθε μέρα 👩‍👩‍👧 e\u0301 \u202eabc",
]
UNICODE = ["naïve", "nai\u0308ve", "😀", "\u200b\u200b word", "ﬁ", "𝔘𝔫𝔦", "a\x00b", "<s> </s> [MASK]"]
# 1 − cosine, and relative to a vector's length: what batches and float32 may move.
SAME = 1e-4


class FunctionSuite(ABC):
    """One carrier.

    Attributes:
        lacks: tests by name, with why the carrier cannot pass them.
        is_exact: whether a text's vector does not depend on others at all.
    """

    lacks: ClassVar[dict[str, str]] = {}

    @pytest.fixture(autouse=True)
    def _marked(self, request: pytest.FixtureRequest) -> None:
        reason = self.lacks.get(request.node.originalname)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    @pytest.fixture
    @abstractmethod
    def function(self) -> Any:
        """A fresh function; what it needs is given back afterwards."""

    # What it says of itself

    def test_says_what_it_is(self, function: EmbeddingFunction) -> None:
        assert function.name
        assert function.kind
        assert bool(function.interface) == (function.checkpoint is None)
        assert function.similarity in (None, "cosine", "dot", "euclidean", "manhattan")
        assert function.limit is None or function.limit > 0
        rows = function.encode(TEXTS[:2]).vectors
        assert function.dimension == rows.shape[1] > 0

    def test_one_that_tells_roles_apart_takes_roles(self, function: EmbeddingFunction) -> None:
        assert function.takes_roles or not function.tells_roles_apart

    # Vectors

    def test_gives_float64_rows(self, function: EmbeddingFunction) -> None:
        answers = function.encode(TEXTS)
        assert answers.vectors.dtype.kind == "f"
        assert answers.vectors.shape[0] == len(TEXTS)
        assert np.isfinite(answers.vectors).all()
        assert not answers.failures

    def test_gives_other_texts_other_vectors(self, function: EmbeddingFunction) -> None:
        rows = function.encode(TEXTS[:3]).vectors
        assert not np.allclose(rows[0], rows[1])
        assert not np.allclose(rows[1], rows[2])

    def test_keeps_its_width(self, function: EmbeddingFunction) -> None:
        widths = {function.encode(TEXTS[:1], role).vectors.shape[1] for role in ("text", "query", "document")}
        assert len(widths) == 1

    # Roles

    @pytest.mark.parametrize("role", ["text", "query", "document"])
    def test_takes_every_role(self, function: EmbeddingFunction, role: Any) -> None:
        assert np.isfinite(function.encode(TEXTS, role).vectors).all()

    def test_tells_roles_apart_as_it_says(self, function: EmbeddingFunction) -> None:
        query, document = (function.encode(TEXTS[:3], role).vectors for role in ("query", "document"))
        # One that has a way of its own for queries may give them the same vectors.
        assert function.tells_roles_apart or close(query, document)

    @pytest.mark.parametrize("role", ["query", "document"])
    def test_gives_roles_that_it_asks_for_alike_one_vector(self, function: EmbeddingFunction, role: Any) -> None:
        alike = function.alike(role)
        assert close(function.encode(TEXTS[:3], role).vectors, function.encode(TEXTS[:3], alike).vectors)
        assert function.alike("text") == "text"
        assert function.alike(alike) == alike
        assert function.takes_roles or alike == "text"
        assert function.tells_roles_apart >= (function.alike("query") != function.alike("document"))

    # How it is asked

    def test_is_asked_in_any_order(self, function: EmbeddingFunction) -> None:
        forwards = function.encode(TEXTS).vectors
        assert close(function.encode(TEXTS[::-1]).vectors[::-1], forwards)

    def test_is_asked_in_batches_of_any_size(self, function: EmbeddingFunction) -> None:
        alone = function.encode(TEXTS, most=1).vectors
        for most in (2, 5, 100):
            assert close(function.encode(TEXTS, most=most).vectors, alone)

    def test_is_asked_by_several_at_once(self, function: EmbeddingFunction) -> None:
        assert close(function.encode(TEXTS, most=1, at_once=4).vectors, function.encode(TEXTS).vectors)

    def test_gives_the_same_twice(self, function: EmbeddingFunction) -> None:
        assert close(function.encode(TEXTS).vectors, function.encode(TEXTS).vectors)

    def test_gives_duplicates_one_vector(self, function: EmbeddingFunction) -> None:
        rows = function.encode([TEXTS[0], TEXTS[1], TEXTS[0]]).vectors
        assert close(rows[2], rows[0])
        np.testing.assert_allclose(*function.encode([TEXTS[0]] * 2).vectors, atol=1e-6)

    def test_takes_many_texts(self, function: EmbeddingFunction) -> None:
        texts = [f"{TEXTS[number % 3]} {number}" for number in range(300)]
        random.Random(0).shuffle(texts)
        rows = function.encode(texts).vectors
        assert np.isfinite(rows).all()
        assert close(rows[[0, 150, 299]], function.encode([texts[place] for place in (0, 150, 299)]).vectors)

    def test_leaves_the_list_as_it_was(self, function: EmbeddingFunction) -> None:
        texts = list(TEXTS)
        function.encode(texts)
        assert texts == TEXTS

    # Texts that something breaks on

    def test_nothing_is_asked_of_no_texts(self, function: EmbeddingFunction) -> None:
        assert function.encode([]).vectors.shape[0] == 0

    def test_an_empty_text_stops_no_other(self, function: EmbeddingFunction) -> None:
        answers = function.encode([TEXTS[0], "", "   ", TEXTS[1]])
        assert np.isfinite(answers.vectors[[0, 3]]).all()
        assert set(answers.failures) <= {1, 2}
        for place in (1, 2):
            # A failure has a reason, or the vector is there, or the checkpoint has none.
            assert place in answers.failures or answers.vectors[place].shape == answers.vectors[0].shape

    def test_takes_a_long_text(self, function: EmbeddingFunction) -> None:
        rows = function.encode(["word " * 3_000, TEXTS[0]]).vectors
        assert np.isfinite(rows).all()

    def test_takes_unicode(self, function: EmbeddingFunction) -> None:
        answers = function.encode([*UNICODE, TEXTS[0]])
        assert np.isfinite(answers.vectors[-1]).all()
        for place in np.flatnonzero(~np.isfinite(answers.vectors).all(axis=1)):
            assert place in answers.failures or function.checkpoint is not None

    # What is used of it

    def test_is_checked(self, function: EmbeddingFunction) -> None:
        report = check_served(function, Material())
        assert {"norm", "one_function"} <= {finding.name for finding in report.findings}
        assert report.kind == function.kind
        assert not [finding for finding in report.findings if finding.name.endswith("could_not_run")]

    def test_is_closed_twice(self, function: EmbeddingFunction) -> None:
        with function:
            function.encode(TEXTS[:1])
        function.close()


def close(one: np.ndarray, two: np.ndarray) -> bool:
    """Whether vectors are the same but for rounding."""
    return bool(np.allclose(one, two, rtol=0, atol=SAME * max(1.0, float(np.abs(two).max(initial=0.0)))))
