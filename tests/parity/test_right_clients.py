"""Clients that put before texts what a checkpoint declares are right, whatever form they have: nothing is found.

LangChain, LlamaIndex and Chroma know queries and documents, and no plain texts: these are compared in their roles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from role_clients import opened
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.parity.parity import compare_with
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with
from embaudit.questions.switch.encode import SearchTexts
from embaudit.questions.switch.switch import switch_functions

# What families declare before queries and before documents.
PROMPTS = {
    "E5": ("query: ", "passage: "),
    "Nomic": ("search_query: ", "search_document: "),
    "Gemma": ("task: search result | query: ", "title: none | text: "),
}


@dataclass
class Puts:
    """Puts something before queries and before documents."""

    checkpoint: Checkpoint
    query: str
    document: str

    def rows(self, prompt: str, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = Encoder(self.checkpoint).encode_texts([prompt + text for text in texts]).tolist()
        return found


class LangChain(Puts):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.rows(self.document, texts)

    def embed_query(self, text: str) -> list[float]:
        return self.rows(self.query, [text])[0]


class LlamaIndex(Puts):
    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return self.rows(self.document, texts)

    def get_query_embedding(self, query: str) -> list[float]:
        return self.rows(self.query, [query])[0]


class Chroma(Puts):
    def __call__(self, input: list[str]) -> list[np.ndarray]:
        return [np.array(row) for row in self.rows(self.document, input)]

    def embed_query(self, input: list[str]) -> list[np.ndarray]:
        return [np.array(row) for row in self.rows(self.query, input)]


class Pair(Puts):
    """As a tuple of two callables."""

    def __iter__(self) -> Iterator[Callable[[list[str]], list[list[float]]]]:
        yield lambda texts: self.rows(self.query, texts)
        yield lambda texts: self.rows(self.document, texts)


FORMS: tuple[type[Puts], ...] = (LangChain, LlamaIndex, Chroma, Pair)
RIGHT = [(family, form) for family in PROMPTS for form in FORMS]


def form_of(form: type[Puts], checkpoint: Checkpoint, query: str, document: str) -> object:
    made = form(checkpoint, query, document)
    return tuple(made) if isinstance(made, Pair) else made


@pytest.fixture(scope="module")
def declaring(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Checkpoint, Checkpoint]]:
    """A checkpoint that declares a family's prompts, and the same weights without any, which clients run."""
    known: dict[str, Checkpoint] = {}

    def load(family: str) -> Checkpoint:
        if family not in known:
            folder: Path = tiny_bert(tmp_path_factory.mktemp("right") / "tiny")
            prompts = dict(zip(("query", "document"), PROMPTS.get(family, ("", "")), strict=True))
            (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
            known[family] = load_checkpoint(str(folder), LoadOptions(device="cpu"))
        return known[family]

    return lambda family: (load(family), load("none"))


Declaring = Callable[[str], tuple[Checkpoint, Checkpoint]]


@pytest.mark.parametrize(("family", "form"), mostly_slow(RIGHT, 2))
def test_a_right_client_is_the_same_function(declaring: Declaring, family: str, form: type[Puts]) -> None:
    declared, bare = declaring(family)
    known, client = CheckpointFunction(declared), opened(form_of(form, bare, *PROMPTS[family]))
    report = compare_with(known, client, sample_material().part(0.05))
    assert report.line == "The same function."
    assert {finding.level for finding in report.findings} == {"ok"}
    assert all((one.worst or 0.0) < 1e-5 for one in report.corpora)
    # Whichever comes first.
    assert compare_with(client, known, sample_material().part(0.02)).line == "The same function."


@pytest.mark.parametrize(("family", "form"), mostly_slow(RIGHT, 1))
def test_a_passport_knows_it(declaring: Declaring, family: str, form: type[Puts]) -> None:
    declared, bare = declaring(family)
    passport = make_passport(CheckpointFunction(declared))
    right = opened(form_of(form, bare, *PROMPTS[family]))
    report = verify_with(passport, right)
    assert report.line == "The same function."
    assert {finding.level for finding in report.findings} == {"ok"}
    # And one that was made of the client knows the checkpoint.
    assert verify_with(make_passport(right), CheckpointFunction(declared)).line == "The same function."


@pytest.mark.parametrize(("family", "form"), mostly_slow(RIGHT, 1))
def test_an_index_stays_as_it_is(declaring: Declaring, family: str, form: type[Puts]) -> None:
    declared, bare = declaring(family)
    material = sample_material().part(0.15)
    searches = [SearchTexts(one) for one in material.collections]
    report = switch_functions(
        CheckpointFunction(declared),
        opened(form_of(form, bare, *PROMPTS[family])),
        material.pairs,
        searches,
    )
    assert report.verdict == "same index"


# (what a client of E5 puts before queries and documents, what is said of it)
WRONG = {
    "nothing before queries": ("", "passage: ", "Asked for queries, it leaves out the prompt 'query: '"),
    "nothing before documents": ("query: ", "", "It leaves out the prompt 'passage: '"),
    "the same before both": ("passage: ", "passage: ", "Asked for queries, it puts 'passage: ' before texts"),
    "the other way round": ("passage: ", "query: ", "Asked for queries, it puts 'passage: ' before texts"),
}


@pytest.mark.parametrize("wrong", mostly_slow(WRONG, 1))
def test_a_wrong_one_is_named(declaring: Declaring, wrong: str) -> None:
    declared, bare = declaring("E5")
    query, document, said = WRONG[wrong]
    client = opened(LangChain(bare, query, document))
    report = compare_with(CheckpointFunction(declared), client, sample_material().part(0.02))
    assert report.verdict == "another function"
    assert said in report.line
    assert verify_with(make_passport(CheckpointFunction(declared)), client).verdict == "another function"


class Keeping(LangChain):
    """Keeps vectors by text alone: a query of a text that was a document has the document's."""

    def rows(self, prompt: str, texts: list[str]) -> list[list[float]]:
        kept: dict[str, list[float]] = self.__dict__.setdefault("kept", {})
        new = [text for text in texts if text not in kept]
        kept |= dict(zip(new, super().rows(prompt, new), strict=True)) if new else {}
        return [kept[text] for text in texts]


def test_vectors_kept_without_the_role_are_named_as_such(declaring: Declaring) -> None:
    declared, bare = declaring("E5")
    report = compare_with(
        CheckpointFunction(declared), opened(Keeping(bare, *PROMPTS["E5"])), sample_material().part(0.02)
    )
    assert report.verdict == "another function"
    assert "it gives the vector that the same text had before, asked for otherwise" in report.line
    assert "puts 'passage: '" not in report.line


def test_an_explanation_is_complete_when_no_kind_of_text_is_left(declaring: Declaring) -> None:
    """Documents lack their prompt; queries are another thing that no reading explains."""
    declared, bare = declaring("E5")

    class Reversed(LangChain):
        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(" ".join(reversed(text)))

    report = compare_with(
        CheckpointFunction(declared), opened(Reversed(bare, "query: ", "")), sample_material().part(0.02)
    )
    assert "gives its vectors" not in report.line
    assert "gives those vectors" in report.line
    assert "Asked for queries, " in report.line
    right_queries = compare_with(
        CheckpointFunction(declared), opened(LangChain(bare, "query: ", "")), sample_material().part(0.02)
    )
    assert "Asked for queries, it gives what the checkpoint gives" in right_queries.line


@pytest.mark.parametrize(
    "names", [pytest.param(("query", "passage"), marks=pytest.mark.slow), ("search_query", "search_document")]
)
def test_prompts_under_other_names_are_the_checkpoints_own(
    declaring: Declaring, tmp_path: Path, names: tuple[str, str]
) -> None:
    """As Nomic's checkpoints declare them."""
    folder: Path = tiny_bert(tmp_path / "tiny")
    prompts = dict(zip(names, PROMPTS["Nomic"], strict=True))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    known = CheckpointFunction(load_checkpoint(str(folder), LoadOptions(device="cpu")))
    _, bare = declaring("E5")
    report = compare_with(known, opened(LangChain(bare, *PROMPTS["Nomic"])), sample_material().part(0.02))
    assert report.verdict == "the same function"
    looks = [finding for finding in report.findings if finding.level == "look"]
    assert {finding.name for finding in looks} == {"prompt_not_picked"}
    passport = make_passport(known)
    passed = verify_with(passport, opened(LangChain(bare, *PROMPTS["Nomic"])))
    assert passed.verdict == "the same function"
    assert {one.sentence for one in passed.findings if one.level == "look"} == {one.sentence for one in looks}
    assert verify_with(passport, opened(LangChain(bare, "passage: ", "query: "))).verdict == "another function"
    assert verify_with(passport, known).line == "The same function."
    # Who puts nothing does as sentence-transformers does.
    as_it_is = (known.checkpoint.reading("query").prompt.text, "")
    right = opened(LangChain(bare, *as_it_is))
    assert compare_with(known, right, Material()).line == "The same function."
    assert verify_with(passport, right).line == "The same function."
    wrong = compare_with(known, opened(LangChain(bare, "passage: ", "query: ")), Material(), with_explanation=False)
    assert wrong.verdict == "another function"
