"""SOCM as steps: of texts cut to one length, of a list against random pairs of its own texts, under other poolings."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.draw import Draw
from embaudit.corpora.load import load_corpus
from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.steps.summary import socm_contrast, socm_cut
from embaudit.measures.socm.steps.texts import socm_pairs, socm_poolings
from embaudit.measures.socm.tightness import POOLINGS, pooled
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import drawn_texts, stage_corpus
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.plan import plan_audit

WORDS = ENGLISH.split()
# 3, 4, … 12 words.
TEXTS = [" ".join(WORDS[7 * place : 7 * place + 3 + place]) for place in range(10)]
PROMPT = "an old town: "


@pytest.mark.parametrize("prompt", ["", PROMPT])
def test_a_cut_is_the_average_over_pairs_of_prefixes(
    tiny_checkpoint: Path, home: Path, tmp_path: Path, prompt: str
) -> None:
    spec = plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), device="cpu", prompt=prompt)).spec
    source = tmp_path / "texts.txt"
    source.write_text("\n".join(TEXTS))
    corpus = stage_corpus(load_corpus("wikipedia", str(source)), str(tmp_path))
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint)))
    own = encoder.own_ids(TEXTS)
    lengths = sorted(len(ids) for ids in own)
    middle = lengths[5]
    # Only the longest text has as many tokens as the last length, and none is read at a million.
    asked = [1, middle, lengths[-1] + 1, 10**6]
    found = {
        row["tokens"]: row
        for row in read_rows([socm_cut.compute(str(tmp_path), spec, corpus, Draw(rows=10), asked)[0].path])
    }
    assert set(found) == {1, middle}
    for tokens, row in found.items():
        kept = [ids[:tokens] for ids in own if len(ids) >= tokens]
        # What a tokenizer makes of the prompt and so many tokens, by hand.
        before = encoder.own_ids([prompt])[0] if prompt else []
        sequences = [encoder.checkpoint.with_special_tokens([*before, *ids]) for ids in kept]
        clouds = {k: token_cloud(k, X) for k, X in encoder.token_embeddings_of_ids(sequences)}
        assert {cloud.n for cloud in clouds.values()} == {tokens + len(before) + 2}
        pairs = list(combinations(range(len(kept)), 2))
        block = given_pairs(clouds, [i for i, _ in pairs], [j for _, j in pairs])
        assert (row["texts"], row["pairs"], row["undefined"]) == (len(kept), len(pairs), 0)
        assert row["socm_mean"] == pytest.approx(block.socm.mean(), abs=1e-6)
        assert row["d_sigma_mean"] == pytest.approx(block.d_sigma.mean(), abs=1e-6)
        assert row["trace_mean"] == pytest.approx(np.mean([cloud.trace for cloud in clouds.values()]), abs=1e-6)
        assert row["socm_low"] < row["socm_mean"] < row["socm_high"]


def test_a_length_beyond_what_the_checkpoint_reads_has_no_row(
    tiny_checkpoint: Path, home: Path, tmp_path: Path
) -> None:
    spec = plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), device="cpu", max_length=6)).spec
    source = tmp_path / "texts.txt"
    source.write_text("\n".join(TEXTS))
    corpus = stage_corpus(load_corpus("wikipedia", str(source)), str(tmp_path))
    rows = read_rows([socm_cut.compute(str(tmp_path), spec, corpus, Draw(rows=10), [4, 5])[0].path])
    # Six with the two special tokens.
    assert [row["tokens"] for row in rows] == [4]


# ---- contrasts ----


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


# ---- poolings ----


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
