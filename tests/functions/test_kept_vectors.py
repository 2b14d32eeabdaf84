"""What an endpoint gave is kept: nothing is asked for twice, and nothing is half kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.serving.server import Refusal, Served, serving
from embaudit.checkpoint import TextKind
from embaudit.checkpoint.prompts import Prompts
from embaudit.embedders.endpoint.exchange import Pace
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.function import Answers, AsDocuments, EmbeddingFunction, WrappedFunction
from embaudit.embedders.kept import VectorCache, cost_line
from embaudit.questions.parity.requested import FirstDimensions
from embaudit.words.errors import StorageError

TEXTS = [f"text {number}" for number in range(70)]


def vectors(texts: list[str]) -> np.ndarray:
    """Numbers that float32 does not hold."""
    return np.array([[len(text), sum(map(ord, text)) / 7, 1.0] for text in texts])


def test_a_second_time_nothing_is_asked_for_and_the_numbers_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    with serving(Served(vectors)) as address:
        with VectorCache(open_endpoint(address), tmp_path) as first:
            before = first.encode([*TEXTS, TEXTS[0]]).vectors
            assert first.requests == 3
        with VectorCache(open_endpoint(address), tmp_path) as second:
            assert "70 of these are kept" in cost_line(second, TEXTS)
            again = second.encode([*TEXTS, TEXTS[0]])
            assert (second.requests, again.failures) == (0, {})
            assert second.dimension == 3
        assert before.tolist() == again.vectors.tolist() == vectors([*TEXTS, TEXTS[0]]).tolist()


@pytest.mark.parametrize(
    "other",
    [
        lambda address, home: VectorCache(open_endpoint(address), home, fresh=True),
        lambda address, home: VectorCache(open_endpoint(address, prompts=Prompts("passage: ")), home),
        lambda address, home: VectorCache(open_endpoint(address, model="other"), home),
        lambda address, home: VectorCache(open_endpoint(address), home).live,
    ],
    ids=["fresh", "with a prompt", "another model", "live"],
)
def test_what_is_kept_is_not_another_functions(other: Callable[[str, Path], VectorCache], tmp_path: Path) -> None:
    with serving(Served(vectors)) as address:
        VectorCache(open_endpoint(address), tmp_path).encode(TEXTS[:3])
        with other(address, tmp_path) as function:
            function.encode(TEXTS[:3])
            assert function.requests == 1


def test_a_query_is_not_a_document(tmp_path: Path) -> None:
    with (
        serving(Served(vectors)) as address,
        VectorCache(open_endpoint(address, prompts=Prompts("", "find: ", "")), tmp_path) as function,
    ):
        assert function.tells_roles_apart
        query, document = (function.encode(["gold"], role).vectors[0, 0] for role in ("query", "document"))
    assert (query, document) == (10, 4)


def test_what_came_back_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    def interrupted(texts: list[str]) -> np.ndarray:
        if TEXTS[-1] in texts:
            raise Refusal(401, "the key has expired")
        return vectors(texts)

    told: list[tuple[int, int]] = []
    served = Served(interrupted)
    with serving(served) as address:
        function = VectorCache(
            open_endpoint(address), tmp_path, told=lambda what, done, total: told.append((done, total))
        )
        with function, pytest.raises(Exception, match="refuses the caller"):
            function.encode(TEXTS)
        assert told == [(32, 70), (64, 70)]
        served.encode = vectors
        with VectorCache(open_endpoint(address), tmp_path) as again:
            assert again.encode(TEXTS).vectors.tolist() == vectors(TEXTS).tolist()
            assert again.requests == 1


def test_what_failed_or_is_no_number_is_asked_for_again(tmp_path: Path) -> None:
    def once(texts: list[str]) -> np.ndarray:
        if "bad" in texts:
            raise Refusal(400, "not that")
        rows = vectors(texts)
        rows[[text == "nan" for text in texts]] = np.nan
        return rows

    served = Served(once)
    with serving(served) as address, VectorCache(open_endpoint(address), tmp_path) as function:
        function.live.wait_at_most = 0  # type: ignore[attr-defined]
        found = function.encode(["good", "bad", "nan", "bad"])
        assert list(found.failures) == [1, 3]
        assert np.isnan(found.vectors[[1, 2, 3]]).all()
        served.encode = vectors
        assert np.isfinite(function.encode(["good", "bad", "nan", "bad"]).vectors).all()


def test_no_text_is_in_the_file(tmp_path: Path) -> None:
    with serving(Served(vectors)) as address, VectorCache(open_endpoint(address), tmp_path) as function:
        function.encode(["a secret text"])
        assert b"a secret text" not in function.path.read_bytes()


def test_a_damaged_file_is_named_and_can_be_forgotten(tmp_path: Path) -> None:
    with serving(Served(vectors)) as address:
        with VectorCache(open_endpoint(address), tmp_path) as function:
            function.encode(TEXTS[:1])
        function.path.write_bytes(b"no database" * 200)
        with pytest.raises(StorageError, match="cannot be kept") as raised:
            VectorCache(open_endpoint(address), tmp_path)
        assert "--fresh" in raised.value.next_step
        with VectorCache(open_endpoint(address), tmp_path, fresh=True) as function:
            function.encode(TEXTS[:1])
            with sqlite3.connect(function.path) as database:
                assert database.execute("SELECT count(*) FROM vector").fetchone() == (1,)


def test_no_minute_has_more_requests_than_allowed() -> None:
    now, sent = [0.0], []
    pace = Pace(6, now=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    for _ in range(20):
        pace.wait()
        sent.append(now[0])
    assert sent[:3] == [0, 10, 20]
    assert all(sum(start <= one < start + 60 for one in sent) <= 6 for start in sent)
    free = Pace(None, sleep=lambda seconds: pytest.fail("it waited"))
    free.wait()


# ---- functions that wrap another ----


class Kept(EmbeddingFunction):
    """Gives ones again, which another function gave."""

    name = "kept"

    def __init__(self, source: EmbeddingFunction | None = None) -> None:
        self.source = source

    @property
    def live(self) -> EmbeddingFunction:
        return self.source or self

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        return Answers(np.full((len(texts), 4), 1.0 if self.source else 2.0), {})


@pytest.mark.parametrize("wrap", [AsDocuments, lambda function: FirstDimensions(function, 2)])
def test_what_is_asked_anew_is_not_what_was_kept(wrap: Callable[[EmbeddingFunction], WrappedFunction]) -> None:
    wrapped = wrap(Kept(Kept()))
    assert set(wrapped.encode(["a"]).vectors.ravel()) == {1.0}
    assert set(wrapped.live.encode(["a"]).vectors.ravel()) == {2.0}
    assert wrapped.typed == "kept"
