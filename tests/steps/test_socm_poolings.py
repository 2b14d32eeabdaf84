"""Other poolings of a corpus, as a step on a part of its texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora import load_corpus
from embaudit.corpora.draw import Draw
from embaudit.measures.socm.steps.texts import socm_pairs, socm_poolings
from embaudit.measures.socm.tightness import POOLINGS, pooled
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import drawn_texts, stage_corpus
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.plan import plan_audit


def test_the_step_is_of_the_texts_of_the_smaller_draw(home: Path, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "bert")
    spec = plan_audit(AuditRequest(checkpoint=str(folder), device="cpu")).spec
    corpus = stage_corpus(load_corpus("wikipedia", "sample"), str(tmp_path))
    drawn, few = Draw.of(40, corpus.rows, "random", 0), Draw.of(20, corpus.rows, "random", 0)
    pairs = [socm_pairs.compute(str(tmp_path), spec, corpus, drawn, shard, 2)[0] for shard in range(2)]
    (file,) = socm_poolings.compute(str(tmp_path), spec, corpus, few, pairs)
    rows = {row["pooling"]: row for row in read_rows([file.path])}
    assert set(rows) == set(POOLINGS)
    assert [name for name, row in rows.items() if row["is_served"]] == ["mean"]
    encoder = Encoder(load_checkpoint(str(folder)))
    texts = drawn_texts(corpus.content_path, few).texts
    vectors = {index: pooled(X) for index, X in encoder.token_embeddings(texts)}
    served = encoder.encode_texts(texts)
    for place, name in enumerate(POOLINGS):
        row = rows[name]
        assert (row["texts"], row["pairs"]) == (20, 190)
        own = np.stack([vectors[index][place] for index in range(20)])
        cosines = np.sum(own * served, axis=1) / np.linalg.norm(own, axis=1) / np.linalg.norm(served, axis=1)
        assert row["cosine_to_mean"] == pytest.approx(cosines.mean(), abs=1e-5)
        assert row["correlation_low"] < row["correlation"] < row["correlation_high"]
