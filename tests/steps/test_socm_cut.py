"""SOCM of texts cut to one length: which texts take part, what is encoded, and what is left of length."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora import load_corpus
from embaudit.corpora.draw import Draw
from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.steps.summary import socm_cut
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.plan import plan_audit

WORDS = ENGLISH.split()
# 3, 4, … 12 words.
TEXTS = [" ".join(WORDS[7 * place : 7 * place + 3 + place]) for place in range(10)]
PROMPT = "an old town: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("checkpoint") / "bert")


@pytest.mark.parametrize("prompt", ["", PROMPT])
def test_a_cut_is_the_average_over_pairs_of_prefixes(folder: Path, home: Path, tmp_path: Path, prompt: str) -> None:
    spec = plan_audit(AuditRequest(checkpoint=str(folder), device="cpu", prompt=prompt)).spec
    source = tmp_path / "texts.txt"
    source.write_text("\n".join(TEXTS))
    corpus = stage_corpus(load_corpus("wikipedia", str(source)), str(tmp_path))
    encoder = Encoder(load_checkpoint(str(folder)))
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


def test_a_length_beyond_what_the_checkpoint_reads_has_no_row(folder: Path, home: Path, tmp_path: Path) -> None:
    spec = plan_audit(AuditRequest(checkpoint=str(folder), device="cpu", max_length=6)).spec
    source = tmp_path / "texts.txt"
    source.write_text("\n".join(TEXTS))
    corpus = stage_corpus(load_corpus("wikipedia", str(source)), str(tmp_path))
    rows = read_rows([socm_cut.compute(str(tmp_path), spec, corpus, Draw(rows=10), [4, 5])[0].path])
    # Six with the two special tokens.
    assert [row["tokens"] for row in rows] == [4]
