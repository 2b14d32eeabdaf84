"""A list against random pairs of its own texts, as a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora import load_corpus
from embaudit.corpora.draw import Draw
from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.steps.summary import socm_contrast
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.plan import plan_audit

LIST = "msmarco-hard-negatives"


def test_the_listed_side_is_the_list_and_the_random_side_its_texts(home: Path, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "bert")
    spec = plan_audit(AuditRequest(checkpoint=str(folder), device="cpu")).spec
    loaded = load_corpus(LIST, "sample")
    corpus = stage_corpus(loaded, str(tmp_path))
    draw = Draw(rows=len(loaded.pairs))
    (file,) = socm_contrast.compute(str(tmp_path), spec, corpus, draw, 1_000)
    found = {row["distance"]: row for row in read_rows([file.path])}
    assert set(found) == {"socm", "d_mu", "d_sigma"}
    firsts, seconds = [pair.first for pair in loaded.pairs], [pair.second for pair in loaded.pairs]
    texts = list(dict.fromkeys([*firsts, *seconds]))
    encoder = Encoder(load_checkpoint(str(folder)))
    clouds = {index: token_cloud(index, X.copy()) for index, X in encoder.token_embeddings(texts)}
    listed = given_pairs(clouds, [texts.index(one) for one in firsts], [texts.index(one) for one in seconds])
    for name, row in found.items():
        assert (row["pairs"], row["queries"]) == (len(loaded.pairs), len(set(firsts)))
        assert row["listed_mean"] == pytest.approx(getattr(listed, name).mean(), abs=1e-6)
        assert row["difference"] == pytest.approx(row["listed_mean"] - row["random_mean"], abs=1e-9)
        assert row["difference_low"] < row["difference"] < row["difference_high"]
    # The same queries and the same passages on both sides: 4 d_Σ + 2 ‖R₁R₂ᵀ‖_* adds up to the same traces.
    traces = np.mean(
        [clouds[texts.index(a)].trace + clouds[texts.index(b)].trace for a, b in zip(firsts, seconds, strict=True)]
    )
    assert found["d_sigma"]["random_mean"] <= traces / 4


def test_a_part_of_a_list_and_a_list_of_one_query(home: Path, tmp_path: Path) -> None:
    spec = plan_audit(AuditRequest(checkpoint=str(tiny_bert(tmp_path / "bert")), device="cpu")).spec
    loaded = load_corpus(LIST, "sample")
    corpus = stage_corpus(loaded, str(tmp_path))
    draw = Draw(rows=len(loaded.pairs))
    part = read_rows([socm_contrast.compute(str(tmp_path), spec, corpus, draw, 6)[0].path])
    assert {row["pairs"] for row in part} == {6}
    assert not read_rows([socm_contrast.compute(str(tmp_path), spec, corpus, draw, 1)[0].path])
