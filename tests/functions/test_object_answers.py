"""What Python objects give that is no vector a text, and what they do wrong: each named, nothing lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import packages_distributions
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from stand_ins import DIMENSION, FastEmbed, HaystackDocuments, LangChain, vector

import embaudit
from embaudit.checkpoint import LoadOptions
from embaudit.embedders.object.carrier import ObjectFunction, rows_of
from embaudit.embedders.object.interfaces import ObjectError
from embaudit.embedders.opened import CallOptions, open_function
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.parity import compare_with
from embaudit.words.errors import CheckpointError, UsageError

TEXTS = ["one two", "three", "four five six"]
ROWS = np.array([vector(text) for text in TEXTS])


async def coroutine(texts: list[str]) -> np.ndarray:
    return ROWS


async def stream(texts: list[str]) -> Any:
    for row in ROWS:
        yield row


def endless(texts: list[str]) -> Any:
    while True:
        yield ROWS[0]


# What vectors may come as.
FORMS: dict[str, Any] = {
    "array": ROWS,
    "float16": ROWS.astype(np.float16),
    "int8": (ROWS * 100).astype(np.int8),
    "lists": ROWS.tolist(),
    "tuples": tuple(map(tuple, ROWS)),
    "list of arrays": list(ROWS),
    "array of objects": np.array([*ROWS, None], dtype=object)[:3],
    "generator": (row for row in ROWS),
    "map": map(np.array, ROWS.tolist()),
    "tensor": torch.tensor(ROWS, requires_grad=True),
    "bfloat16": torch.tensor(ROWS).bfloat16(),
    "list of tensors": list(torch.tensor(ROWS, requires_grad=True)),
    "data frame": pd.DataFrame(ROWS),
    "series of lists": pd.Series(ROWS.tolist()),
    "masked": np.ma.MaskedArray(ROWS, mask=False),
    "NaN": np.where(ROWS > 0.5, np.nan, ROWS),
    "None for NaN": [[None, *row[1:]] for row in ROWS.tolist()],
}


@pytest.mark.parametrize("form", FORMS)
def test_vectors_come_in_every_form(form: str) -> None:
    rows = np.array(rows_of(FORMS[form], 3))
    assert rows.dtype == np.float64
    wanted = {"int8": (ROWS * 100).astype(np.int8), "NaN": np.where(ROWS > 0.5, np.nan, ROWS)}.get(form, ROWS)
    if form == "None for NaN":
        assert np.isnan(rows[:, 0]).all()
        rows, wanted = rows[:, 1:], ROWS[:, 1:]
    assert np.allclose(rows, wanted, atol=1e-2, equal_nan=True)


# (what is given for three texts, what is said)
WRONG: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "None": (lambda texts: None, "it gives None"),
    "a dict": (lambda texts: {"embedding": ROWS}, "a dict with 'embedding', no vectors"),
    "a text": (lambda texts: "vectors", "it gives a text"),
    "texts": (lambda texts: texts, "it gives a text"),
    "words": (lambda texts: [text.split() for text in texts], "texts in place of numbers"),
    "a set": (lambda texts: {1.0, 2.0}, "a set, which has no order"),
    "a number": (lambda texts: 1.5, "a float, no vectors"),
    "numbers": (lambda texts: [1.0] * len(texts), "one list of"),
    "one vector": (lambda texts: ROWS[0], "one list of 6 numbers"),
    "a vector a token": (lambda texts: ROWS[None].repeat(len(texts), 0), "one vector a token"),
    "a vector a token, in lists": (
        lambda texts: [[row.tolist()] * len(text) for text, row in zip(texts, ROWS, strict=False)],
        "one vector a",
    ),
    "matrices": (lambda texts: [ROWS] * len(texts), "one vector a token"),
    "a sparse matrix": (lambda texts: scipy.sparse.csr_matrix(ROWS[: len(texts)]), "a sparse matrix"),
    "sparse tensor": (lambda texts: torch.tensor(ROWS).to_sparse(), "a sparse matrix"),
    "objects": (lambda texts: [object() for _ in texts], "a list of object, not of vectors"),
    "dicts": (lambda texts: [{"values": [1.0]} for _ in texts], "a dict with 'values'"),
    "complex numbers": (lambda texts: ROWS[: len(texts)] * 1j, "complex128"),
    "empty vectors": (lambda texts: [[] for _ in texts], "an empty vector"),
    "a coroutine": (coroutine, "it is async"),
    "an async generator": (stream, "it is async"),
    "coroutines": (lambda texts: [coroutine(texts) for _ in texts], "it is async"),
    "too few": (lambda texts: ROWS[: len(texts) - 1], "0 vectors for 1 text"),
    "too many": (lambda texts: ROWS[[0, *range(len(texts))]], "2 vectors for 1 text"),
    "endless": (endless, "more than 1 vector for 1 text"),
    "raises": (lambda texts: 1 / 0, "ZeroDivisionError: division by zero (test_object_answers.py, line"),
    "exits": (lambda texts: sys.exit("no key"), "SystemExit: no key"),
    "is cancelled": (lambda texts: (_ for _ in ()).throw(asyncio.CancelledError()), "CancelledError"),
}


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("name", WRONG)
def test_what_gives_no_vectors_at_all_is_an_error_that_says_what_it_gives(name: str) -> None:
    given, said = WRONG[name]
    function = ObjectFunction(given, "python:mine:embed")
    answers = function.encode(TEXTS[:1])
    assert said in answers.failures[0]
    with pytest.raises(ObjectError, match=r"python:mine:embed gives no vector of the first 5 texts"):
        function.encode([f"text {number}" for number in range(9)], most=1)
    # A few are asked, not all.
    assert function.requests < 10


def of_all_but(word: str) -> Callable[[list[str]], np.ndarray]:
    def embed(texts: list[str]) -> np.ndarray:
        if any(word in text for text in texts):
            raise ValueError(f"cannot read {word}")
        return np.array([vector(text) for text in texts])

    return embed


def test_a_text_that_it_fails_on_is_found_and_stops_no_other() -> None:
    texts = [f"text {number}" for number in range(40)]
    answers = ObjectFunction(of_all_but("17")).encode(texts)
    assert list(answers.failures) == [17]
    assert "ValueError: cannot read 17" in answers.failures[17]
    assert np.isfinite(np.delete(answers.vectors, 17, axis=0)).all()


def test_hard_texts_that_come_first_do_not_give_it_up() -> None:
    answers = ObjectFunction(of_all_but("hard")).encode([*["hard"] * 8, *TEXTS], most=1)
    assert sorted(answers.failures) == list(range(8))


def test_a_text_that_is_left_out_of_a_batch_is_no_vector_of_another() -> None:
    function = ObjectFunction(lambda texts: [vector(text) for text in texts if text])
    together = function.encode(["one", "", "two"])
    assert together.failures == dict.fromkeys(range(3), "it gives 2 vectors for 3 texts")
    alone = function.encode(["one", "", "two"], most=1)
    assert alone.failures == {1: "it gives 0 vectors for 1 text"}


def test_a_batch_without_one_vector_is_halved() -> None:
    answers = ObjectFunction(lambda texts: [None if text == "b" else vector(text) for text in texts]).encode(
        ["a", "b", "c"]
    )
    assert answers.failures == {1: "it gives None"}


def test_vectors_of_other_lengths_are_named() -> None:
    answers = ObjectFunction(lambda texts: [vector(text)[: 5 if "short" in text else None] for text in texts]).encode(
        [*TEXTS, "short"]
    )
    assert answers.failures == {3: "a vector of 5 numbers, where others have 6"}


class OtherWidth(LangChain):
    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text)[:4]


def test_queries_of_another_dimension_are_named() -> None:
    function = ObjectFunction(OtherWidth())
    function.encode(TEXTS, "document")
    answers = function.encode(TEXTS, "query")
    assert answers.vectors.shape == (3, DIMENSION)
    assert answers.failures == dict.fromkeys(range(3), "a vector of 4 numbers, where others have 6")
    report = compare_with(ObjectFunction(OtherWidth()), ObjectFunction(LangChain()), Material())
    assert report.verdict == "another function"


def test_what_it_prints_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def chatty(texts: list[str]) -> np.ndarray:
        print("embedding …")
        return ROWS

    ObjectFunction(chatty).encode(TEXTS)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "embedding …\n")


def test_what_it_does_to_the_list_or_the_vectors_changes_nothing() -> None:
    kept = np.zeros((1, DIMENSION))

    def reusing(texts: list[str]) -> np.ndarray:
        kept[0] = vector(texts.pop())
        texts.clear()
        return kept

    given = list(TEXTS)
    assert np.allclose(ObjectFunction(reusing).encode(given, most=1).vectors, ROWS)
    assert given == TEXTS


def test_ctrl_c_passes_through() -> None:
    def interrupted(texts: list[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ObjectFunction(interrupted).encode(TEXTS)


def test_it_is_asked_in_one_thread_unless_it_is_declared_safe() -> None:
    import threading

    def asked_in(**settings: Any) -> set[int]:
        threads = set()

        def embed(texts: list[str]) -> np.ndarray:
            threads.add(threading.get_ident())
            return np.array([vector(text) for text in texts])

        ObjectFunction(embed, **settings).encode([f"{number}" for number in range(20)], most=1, at_once=4)
        return threads

    assert asked_in() == {threading.get_ident()}
    assert threading.get_ident() not in asked_in(takes_many_at_once=True)


class Nothing:
    pass


class Needy:
    def __init__(self, model: str) -> None:
        raise AssertionError


class Broken:
    def __init__(self) -> None:
        raise RuntimeError("no such model")


class SparseEncoder:
    def encode(self, texts: list[str]) -> Any: ...


class ColBERT(SparseEncoder): ...


class LoudAttributes:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("who asks?")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Nothing(), r"Nothing, a Nothing, offers nothing that gives vectors: embed_documents and embed_query"),
        (7, "int, a int, offers nothing"),
        (Needy, "Needy is a class that needs model"),
        (Broken, r"Broken\(\) gives no object: RuntimeError: no such model"),
        (SparseEncoder(), "is a sparse model"),
        (ColBERT(), "is a late-interaction model"),
        ((LangChain(),), r"A pair of functions is \(query, document\), not 1"),
        (
            {"queries": LangChain(), "documents": LangChain()},
            "a dict with query and document, not with queries, documents",
        ),
        (lambda: None, "offers nothing"),
    ],
)
def test_what_gives_no_vectors_is_refused_by_name(given: Any, said: str) -> None:
    with pytest.raises((UsageError, ObjectError, CheckpointError), match=said):
        open_function(given, LoadOptions())


def test_an_object_whose_attributes_raise_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="offers nothing that gives vectors"):
        open_function(LoudAttributes(), LoadOptions())


def test_what_does_not_warm_up_is_told() -> None:
    class Cold(HaystackDocuments):
        def warm_up(self) -> None:
            raise OSError("no such model")

    with pytest.raises(ObjectError, match="does not warm up: OSError: no such model"):
        ObjectFunction(Cold())


def test_what_it_declares_is_read() -> None:
    class Declared(FastEmbed):
        max_seq_length = 77
        similarity_fn_name = "dot_score"

    assert (ObjectFunction(Declared()).limit, ObjectFunction(Declared()).similarity) == (77, "dot")


def test_prompts_of_its_callers_are_put_before_texts() -> None:
    from embaudit.checkpoint.prompts import Prompts

    function = open_function(
        lambda texts: [vector(text) for text in texts], LoadOptions(), CallOptions(prompts=Prompts("", "find ", ""))
    )
    assert np.allclose(function.encode(["one"], "query").vectors, vector("find one"))
    assert function.tells_roles_apart
    with pytest.raises(UsageError, match="no prompts of its callers"):
        open_function(function, LoadOptions(), CallOptions(prompts=Prompts("", "find ", "")))
    with pytest.raises(UsageError, match="no API and no models"):
        open_function(LangChain(), LoadOptions(), CallOptions(model="large"))


def test_another_role_of_an_object_is_another_function() -> None:
    """What adds a prompt to queries is not what adds none, though texts get the same vectors."""

    class Alike(LangChain):
        def embed_query(self, text: str) -> list[float]:
            return vector(text).tolist()

    report = embaudit.parity(Alike(), LangChain())
    assert report.verdict == "another function"
    assert "as queries" in report.line
    assert embaudit.parity(Alike(), Alike()).verdict == "the same function"


def test_asking_an_object_imports_three_packages() -> None:
    """It is asked in an environment of its own package, which has no torch or DuckDB (test_real_packages.py)."""
    code = "import sys; had = {*sys.modules}; import embaudit.embedders.object.carrier; print(*{*sys.modules} - had)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    known = packages_distributions()
    packages = {name for module in loaded for name in known.get(module.partition(".")[0], ())}
    of_pydantic = {"annotated-types", "pydantic_core", "typing_extensions", "typing-inspection"}
    assert packages - of_pydantic == {"embaudit", "numpy", "pydantic", "scipy"}
