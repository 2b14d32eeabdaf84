"""Vectors whose length is not 1: what is said follows from what is declared, and from what ranking by dot loses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from broken_copies import copy_of_packaged
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.declared.rule import Finding
from embaudit.measures.quality.lengths import Declared, length_findings
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.measured import MeasuredCollection
from embaudit.measures.quality.passes import SERVED, Pass
from embaudit.measures.quality.quality import quality_findings
from embaudit.measures.quality.scores import CollectionScorer

WORD = re.compile(r"\w+")


def word_vector(word: str) -> np.ndarray:
    return np.random.default_rng(list(word.encode())).normal(size=64)


def by_words(texts: tuple[str, ...], lengths: str) -> np.ndarray:
    """The mean of random vectors of rare words, of length 1, another one, or one that grows with a text's hash."""
    rows = np.array(
        [np.sum([word_vector(w) for w in WORD.findall(text.lower()) if len(w) > 4], axis=0) for text in texts]
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if lengths == "unit":
        return rows
    if lengths == "constant":
        return rows * 7.6
    own = np.array([0.2 + sum(text.encode()) % 80 / 10 for text in texts])
    return rows * own[:, None]


def searched(lengths: str) -> MeasuredCollection:
    """Real queries, found by the words that they share with documents."""
    collection, _ = sample_material().collections[0].first(60, 200)
    queries, documents = (
        Pass({SERVED: by_words(tuple(texts), lengths).astype(np.float32)})
        for texts in (collection.queries, collection.documents)
    )
    return MeasuredCollection(collection, CollectionScorer(collection), queries, documents, (), (), "cosine")


def said(declared: Declared, lengths: str = "spread", figures: dict[str, object] | None = None) -> Finding:
    (found,) = length_findings([], [searched(lengths)], declared, {} if figures is None else figures)
    return found


@pytest.mark.parametrize(
    ("declared", "level", "words"),
    mostly_slow(
        [
            (Declared(), "look", "no file says how they are to be compared"),
            (Declared("cosine"), "look", "declares cosine"),
            (Declared(is_served=True), "look", "an endpoint does not say"),
            (Declared(normalises=True), "look", "modules.json declares Normalize"),
            (Declared(card_normalises=True), "look", "model card normalises"),
            (Declared("dot", card_normalises=True), "look", "model card normalises"),
            (Declared("dot"), "ok", "declares the dot product"),
            (Declared("dot_score"), "ok", "declares the dot product"),
            (Declared("euclidean"), "ok", "declares the Euclidean distance"),
            (Declared("manhattan"), "ok", "declares the Manhattan distance"),
        ],
        3,
    ),
    ids=str,
)
def test_what_is_declared_decides(declared: Declared, level: str, words: str) -> None:
    found = said(declared)
    assert (found.name, found.level) == ("norm", level)
    assert words in found.sentence
    assert bool(found.advice) == (level == "look")
    # Of unit vectors nothing is said, whatever is declared.
    assert said(declared, "unit").level == "ok"
    assert "their dot product is the cosine" in said(declared, "unit").sentence


def test_the_loss_is_the_one_that_is_measured() -> None:
    figures: dict[str, object] = {}
    found = said(Declared(), "spread", figures)
    one = searched("spread")
    scores = [one.score(one.similarities(similarity=by)).value for by in ("dot", "cosine")]
    loss = figures["lengths"]["dot_product"][one.name]  # type: ignore[index]
    assert loss["value"] == pytest.approx(scores[0] - scores[1])
    assert loss["low"] < loss["value"] < min(loss["high"], 0)
    shown = f"{abs(loss['value']):.2f}".removeprefix("0")
    assert f"Ranked by dot product, it changes nDCG@10 by −{shown} [" in found.sentence
    json.dumps(figures)


def test_one_length_for_all_changes_no_ranking() -> None:
    found = said(Declared(), "constant")
    assert found.level == "look"
    assert "changes nDCG@10 by +.00 on" in found.sentence or "changes nDCG@10 by .00 on" in found.sentence
    assert "loses nothing" in found.meaning
    assert '"similarity_fn_name": "dot"' in found.advice


CARDS = {
    "architecture": ("SentenceTransformer(\n  (1): Pooling({})\n  (2): Normalize()\n)", True),
    "table": ("| Produces normalized embeddings | Yes |", True),
    "no": ("| Produces normalized embeddings | No |\n(1): Pooling({})", False),
    "code": ("embeddings = F.normalize(embeddings, p=2, dim=1)", True),
    "nothing": ("A model.", False),
}


@pytest.mark.parametrize("name", CARDS)
def test_the_card_is_read(name: str, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model")
    without_normalize(folder)
    (folder / "README.md").write_text(CARDS[name][0])
    (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    declared = Declared.by(load_checkpoint(str(folder), LoadOptions(device="cpu")))
    assert declared == Declared("dot", normalises=False, card_normalises=CARDS[name][1])


def without_normalize(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").unlink()
    kept = [module for module in modules if not module["type"].endswith("Normalize")]
    assert len(kept) < len(modules)
    (folder / "modules.json").write_text(json.dumps(kept))


@pytest.mark.slow
def test_the_packaged_checkpoint_without_its_normalize(tmp_path: Path) -> None:
    folder = copy_of_packaged(tmp_path / "copy", without_normalize)
    whole = sample_material()
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    report = quality_findings(Encoder(checkpoint), Material((), whole.collections))
    (found,) = [one for one in report.findings if one.name == "norm"]
    assert found.level == "look"
    (loss,) = report.figures["lengths"]["dot_product"].values()
    # nDCG@10 loses .10 on the sample's 90 queries.
    assert loss["value"] == pytest.approx(-0.10, abs=0.02)
    assert loss["high"] < -0.03
    # Its cosine is as good as before: nothing else is found.
    assert {one.name for one in report.findings if one.level in ("look", "problem")} == {"norm"}
