"""What comes out beside the base: distances and neighbours against a loop, and weights that changed for nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from change_copies import LAYER, WORDS, Tensors, compared, copy_of, in_file, jittered, small_sample
from some_rows import mostly_slow
from tiny_models import declare, dense, load, pooling

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.agreement import KINDS
from embaudit.questions.change.gains import measure_beside, measure_tuned
from embaudit.questions.change.vectors import compare_neighbours, compare_vectors, hard_vectors, overlap


def cosine(one: list[float], two: list[float]) -> float:
    product = sum(a * b for a, b in zip(one, two, strict=True))
    return product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))


def test_distances_and_neighbours_are_those_of_a_loop(base: Path, tmp_path: Path) -> None:
    one, two = load(copy_of(base, tmp_path / "tuned", jittered(size=0.3))), load(base)
    encoders = Encoder(one), Encoder(two)
    beside = measure_beside(measure_tuned(one, (), small_sample()), two, small_sample())
    moved = {each.kind: each for each in compare_vectors(*map(hard_vectors, encoders), beside)}

    texts = list(KINDS["capitals"])
    vectors = [[encoder.encode_texts([text])[0].tolist() for text in texts] for encoder in encoders]
    distances = sorted(1 - cosine(a, b) for a, b in zip(*vectors, strict=True))
    assert moved["capitals"].median == pytest.approx(distances[len(distances) // 2], abs=1e-5)
    assert moved["capitals"].most == pytest.approx(distances[-1], abs=1e-5)

    pairs = small_sample().pairs[0]
    sentences = list(dict.fromkeys([*pairs.firsts, *pairs.seconds]))
    assert moved["the sentences of the embedded sample"].texts == len(sentences)
    nearest = []
    for encoder in encoders:
        rows = [row.tolist() for row in encoder.encode_texts(sentences)]
        near = [sorted((-cosine(a, b), j) for j, b in enumerate(rows) if j != i)[:10] for i, a in enumerate(rows)]
        nearest.append([{j for _, j in some} for some in near])
    shares = [len(a & b) / 10 for a, b in zip(*nearest, strict=True)]
    (found,) = compare_neighbours(beside)
    assert found.overlap == pytest.approx(sum(shares) / len(shares), abs=0.005)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [([[1, 2, 3]], [[3, 2, 1]], 1.0), ([[1, 2]], [[3, 4]], 0.0), ([[1, 2], [1, 2]], [[1, 3], [1, 2]], 0.75)],
)
def test_overlap(first: list[list[int]], second: list[list[int]], expected: float) -> None:
    assert overlap(np.array(first), np.array(second)) == expected


def unused_row(tensors: Tensors) -> None:
    tensors[WORDS][4] += 1.0  # [MASK], which no text contains as a token


def hardly(tensors: Tensors) -> None:
    for name, tensor in tensors.items():
        if name.startswith(LAYER.format(1)) and tensor.dim() == 2:
            tensors[name] = tensor * (1 + 1e-6)


@pytest.mark.parametrize(
    ("change", "name", "level"),
    mostly_slow(
        [
            (in_file(hardly), "hardly_changed", "problem"),
            (in_file(unused_row), "hardly_changed", "look"),
            (jittered(size=0.05), "vectors_moved", "ok"),
            (lambda folder: None, "vectors_moved", "ok"),
            (jittered("pooler"), "vectors_moved", "ok"),
        ],
        2,
    ),
    ids=["too little", "a row that no text has", "enough", "nothing", "nothing that is read"],
)
def test_weights_that_change_no_vector(change: object, name: str, level: str, base: Path, tmp_path: Path) -> None:
    report = compared(copy_of(base, tmp_path / "tuned", change), base)  # type: ignore[arg-type]
    levels = {finding.name: finding.level for finding in report.findings}
    assert levels[name] == level
    if name == "hardly_changed" or "nothing_changed" in levels:
        # The same vectors have the same scores.
        assert "lost_on_sample" not in levels


def test_other_dimensions_have_neighbours_and_scores_in_common(base: Path, tmp_path: Path) -> None:
    tuned = copy_of(
        base, tmp_path / "tuned", lambda folder: declare(folder, pooling("mean"), dense(), ("Normalize", {}))
    )
    report = compared(tuned, base)
    findings = {finding.name: finding for finding in report.findings}
    assert findings["vectors_moved"].sentence.startswith("Its vectors have other dimensions than the base's.")
    assert report.figures["vectors"] == []
    assert 0 < report.figures["neighbours"][0]["overlap"] < 1
    assert "lost_on_sample" in findings
