"""Length collapse through the audit flow: a short corpus, long texts, an unknown architecture, and the page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import Embaudit
from judged_collections import write_collection
from planned import assert_planned
from small_audits import AuditOnce, answered, shown
from tiny import ENGLISH
from warehouse_rows import rows

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.questions.audit import AuditRequest
from embaudit_flows.audit import AuditOutcome, audit

PROFILE = """
name = "lengths"
version = 1
description = "for tests"
[length]
texts = 30
bin_width = 40
control_texts = 12
sigma_texts = 3
sigma_lengths = [8, 64, 4000]
neighbours = 4
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "lengths.toml"
    path.write_text(PROFILE)
    return path


def write_texts(path: Path, lengths: list[int]) -> Path:
    generator = np.random.default_rng(0)
    rows = [
        {"text": " ".join(generator.choice(ENGLISH.split(), length)), "label": "ab"[place % 2]}
        for place, length in enumerate(lengths)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty texts of 10 to 155 words, each one token."""
    return write_texts(tmp_path_factory.mktemp("texts") / "long.jsonl", list(range(10, 160, 5)))


def run(checkpoint: Path, profile: Path, texts: Path, **corpora: str) -> AuditOutcome:
    sources = {"longdocs": str(texts), **corpora}
    request = {"profile": str(profile), "measures": ["length"], "corpora": sources, "device": "cpu"}
    return audit(AuditRequest(checkpoint=str(checkpoint), **request))


@pytest.fixture(scope="module")
def outcome(audit_once: AuditOnce, profile: Path, long_texts: Path) -> AuditOutcome:
    """An audit of the long texts, to be read only."""
    return audit_once(profile=str(profile), measures=["length"], corpora={"longdocs": str(long_texts)})


@pytest.mark.slow
def test_every_table_is_published(outcome: AuditOutcome) -> None:
    assert outcome.warnings == []
    bins = rows(outcome, "SELECT condition, low, high, texts, cosine_mean IS NULL FROM length_bin ORDER BY ALL")
    assert len(bins) == 12
    assert ("natural", 0, 40, 6, False) in bins
    assert ("natural", 80, 126, 10, False) in bins
    ((texts, beyond, read, configured),) = rows(
        outcome, "SELECT texts, beyond_read, read_limit, configured_limit FROM length_summary"
    )
    assert (texts, beyond, read, configured) == (30, 6, 126, 62)
    sigma = rows(outcome, "SELECT length, count(*), min(texts) FROM length_sigma GROUP BY ALL ORDER BY ALL")
    # What the model has no positions for is cut to what it has; six texts are longer than that: too few of thirty.
    assert sigma == [(8, 8, 3), (64, 8, 3)]
    assert rows(outcome, "SELECT count(*) FROM length_sigma WHERE sigma_s IS NULL OR hc_energy > 1") == [(0,)]
    assert rows(outcome, "SELECT count(*) FROM length_pair WHERE first_label = second_label") == [(0,)]
    assert rows(outcome, "SELECT count(DISTINCT condition) FROM length_curve") == [(4,)]


@pytest.mark.slow
def test_a_given_collection_is_ranked_as_it_is_read_and_cut(
    home: Path, tiny_checkpoint: Path, profile: Path, long_texts: Path, tmp_path: Path
) -> None:
    generator = np.random.default_rng(1)
    documents = [" ".join(generator.choice(ENGLISH.split(), length)) for length in [8] * 20 + [30] * 20]
    queries = [" ".join(text.split()[:6]) for text in documents[::2]]
    folder = write_collection(tmp_path / "beir", documents, queries, {i: 2 * i for i in range(20)})
    outcome = run(tiny_checkpoint, profile, long_texts, retrieval=str(folder))
    assert outcome.warnings == []
    assert_planned(outcome)
    found = rows(
        outcome,
        'SELECT condition, relevant, boundary, "read", documents, pairs, units, low IS NOT NULL FROM length_ranking '
        "ORDER BY ALL",
    )
    assert found == [
        (condition, relevant, 19.0, read, 40, 10, 10, True)
        for condition, read in (("cut", 8), ("natural", 62))
        for relevant in ("long", "short")
    ]
    # Of texts that are cut to what the shortest have, those have the vectors that they had.
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu")))
    asked, *vectors = (
        encoder.encode_texts(texts)
        for texts in (queries, documents, [" ".join(text.split()[:8]) for text in documents])
    )
    for condition, own in zip(("natural", "cut"), vectors, strict=True):
        expected = np.mean([(own[20:] @ asked[i] > own[2 * i] @ asked[i]).mean() for i in range(10)])
        ((by_long,),) = rows(
            outcome, f"SELECT by_long FROM length_ranking WHERE condition = '{condition}' AND relevant = 'short'"
        )
        assert by_long == pytest.approx(expected, abs=1e-6)
    assert "length_ranking" in {name for (name,) in rows(outcome, "SELECT name FROM finding")}


@pytest.mark.slow
def test_documents_of_one_length_are_a_note(
    home: Path, tiny_checkpoint: Path, profile: Path, long_texts: Path, tmp_path: Path
) -> None:
    alike = write_collection(
        tmp_path / "alike", ["river stone " + word for word in ENGLISH.split()[:20]], ENGLISH.split()[:10]
    )
    note = "Skipped length in rankings of retrieval: all documents are of one length."
    assert note in run(tiny_checkpoint, profile, long_texts, retrieval=str(alike)).warnings


@pytest.mark.slow
def test_short_texts_have_a_curve_and_a_note(home: Path, tiny_checkpoint: Path, profile: Path, tmp_path: Path) -> None:
    outcome = run(tiny_checkpoint, profile, write_texts(tmp_path / "short.jsonl", [5]))
    assert outcome.warnings == ["Skipped sigma_a by length over longdocs: fewer than two texts have 8 tokens."]
    assert rows(outcome, "SELECT max(texts), count(cosine_mean) FROM length_bin") == [(1, 0)]
    assert rows(outcome, "SELECT count(*), count(rise) FROM length_rise") == [(4, 0)]
    assert "length_pair" not in outcome.rows or outcome.rows["length_pair"] == 0


@pytest.mark.slow
def test_an_unknown_architecture_has_a_curve_and_a_note(
    home: Path, tiny_checkpoint: Path, profile: Path, long_texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embaudit.checkpoint.anatomy.families.FAMILIES", ())
    (warning,) = (outcome := run(tiny_checkpoint, profile, long_texts)).warnings
    assert warning.startswith("Skipped sigma_a by length over longdocs: embaudit does not know where BertModel")
    assert rows(outcome, "SELECT count(*) FROM length_bin") == [(12,)]
    assert rows(outcome, "SELECT count(*) FROM length_sigma") == [(0,)]


@pytest.mark.slow
def test_the_page_and_the_queries_of_an_audit(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    page = shown(embaudit_here, outcome)
    for expected in (
        "Mean cosine by length, longdocs: 30 texts",
        "0-40",
        "80-126 *",
        "* longer than the 62 tokens",
        "6 of 30 texts are longer than the 126 tokens",
        "Truncations of the same texts",
        "σ_a by length, 3 texts",
    ):
        assert expected in page
    for query in ("length", "length-bias", "length-pairs", "length-sigma"):
        assert answered(embaudit_here, outcome, query), query
