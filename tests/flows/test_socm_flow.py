"""SOCM through the audit flow: lists of pairs, mined negatives, undefined texts, and what the tables say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judged_collections import write_collection
from small_audits import Audited, home_at
from tiny import tiny_bert
from warehouse_rows import rows

from embaudit.corpora.catalog import CORPORA
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import CorpusError, MeasureError, UsageError
from embaudit_flows.audit import AuditOutcome, audit

LIST = "msmarco-hard-negatives"


def run(checkpoint: Path, profile: Path, **options: Any) -> AuditOutcome:
    asked = {"profile": str(profile), "measures": ["socm"], "device": "cpu", **options}
    return audit(AuditRequest(checkpoint=str(checkpoint), **asked))


def beir(folder: Path) -> Path:
    """Four passages, two queries, one relevant passage each."""
    passages = ("the river runs to the sea", "the old river town", "iron and stone", "a song of the sea")
    return write_collection(folder, passages, ["river sea", "stone"], {0: 0, 1: 2})


@pytest.fixture(scope="module")
def odd_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real BERT in which "red green" averages to nothing.

    Attention and feed-forward layers add nothing and positions are zero, so that a token's output is its layer-normed
    word embedding, an odd function; "green" is minus "red", and [SEP] is minus [CLS].
    """
    import torch
    from transformers import BertModel, PreTrainedTokenizerFast

    folder = tiny_bert(tmp_path_factory.mktemp("odd") / "odd")
    model = BertModel.from_pretrained(folder, add_pooling_layer=False)
    ids = PreTrainedTokenizerFast.from_pretrained(folder).get_vocab()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name and ("output.dense" in name or "position" in name or "token_type" in name):
                parameter.zero_()
            if name.endswith("LayerNorm.bias"):
                parameter.zero_()
        words = model.embeddings.word_embeddings.weight
        words[ids["green"]] = -words[ids["red"]]
        words[ids["[SEP]"]] = -words[ids["[CLS]"]]
    model.save_pretrained(folder)
    return folder


def test_a_list_of_pairs_is_read_where_it_is_given(audited: Audited) -> None:
    outcome = audited.outcome
    assert LIST in outcome.corpora
    assert set(rows(outcome, "SELECT DISTINCT corpus FROM socm_summary")) == {("wikipedia",), ("msmarco",), (LIST,)}
    listed = rows(
        outcome, f"SELECT count(*), min(position), max(position) FROM socm_listed_pair WHERE corpus = '{LIST}'"
    )
    count = listed[0][0]
    assert listed == [(count, 0, count - 1)]
    assert count > 20
    summary = rows(
        outcome,
        f"SELECT pair_kind, pairs, undefined, method, checked_pairs, accuracy < 1e-6, socm_mean "
        f"FROM socm_summary WHERE corpus = '{LIST}'",
    )
    mean = rows(outcome, "SELECT avg(socm) FROM socm_listed_pair")[0][0]
    assert summary[0][:6] == ("listed", count, 0, "eigenvalues", min(count, 64), True)
    assert summary[0][6] == pytest.approx(mean)
    # Every text that a pair names is there, once, and numbered without a gap.
    texts = rows(
        outcome, f"SELECT count(*), count(DISTINCT position), max(position) FROM socm_text WHERE corpus = '{LIST}'"
    )
    assert texts[0][0] == texts[0][1] == texts[0][2] + 1
    assert rows(
        outcome,
        "SELECT count(*) FROM socm_listed_pair WHERE NOT EXISTS (SELECT 1 FROM socm_text AS t "
        "WHERE t.corpus = socm_listed_pair.corpus AND t.position IN (first, second))",
    ) == [(0,)]
    # All pairs of the corpora beside it are what they were.
    assert rows(outcome, "SELECT count(*) FROM socm_pair") == [(2 * 435,)]


@pytest.mark.slow
def test_shards_of_a_list_say_the_same(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tiny_checkpoint, tiny_profile, corpora={LIST: "sample"}, warehouse=str(home / "whole.duckdb"))
    monkeypatch.setenv("EMBAUDIT_PAIRS_PER_SHARD", "1500")
    parts = run(tiny_checkpoint, tiny_profile, corpora={LIST: "sample"}, warehouse=str(home / "parts.duckdb"))
    assert len(list(home.rglob("socm_listed_pair-*.parquet"))) > 2
    pairs = "SELECT position, first, second, round(d_mu, 5), round(d_sigma, 4) FROM socm_listed_pair ORDER BY 1"
    assert rows(parts, pairs) == rows(whole, pairs)
    texts = f"SELECT position, tokens, round(trace_sigma, 4) FROM socm_text WHERE corpus = '{LIST}' ORDER BY 1"
    assert rows(parts, texts) == rows(whole, texts)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bm25", "checkpoint"])
def test_negatives_are_mined_from_a_folder(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path, method: str
) -> None:
    source = f"mined:{method}:{beir(tmp_path / 'beir')}"
    outcome = run(tiny_checkpoint, tiny_profile, corpora={LIST: source})
    assert outcome.corpora[LIST].startswith(source)
    pairs = rows(outcome, "SELECT first, second, relation FROM text_pair ORDER BY position")
    assert [pair[0] for pair in pairs] == ["river sea", "stone"]
    assert {pair[2] for pair in pairs} == {"hard_negative"}
    assert pairs[0][1] != "the river runs to the sea"
    assert pairs[1][1] != "iron and stone"
    if method == "bm25":
        # Both share one word with the query that is as rare; without its stop words this one is shorter.
        assert pairs[0][1] == "a song of the sea"
    assert rows(outcome, "SELECT count(*) FROM socm_listed_pair") == [(2,)]
    mined = next(home.rglob("mined_pair-*.parquet"))
    before = mined.stat().st_ino
    assert run(tiny_checkpoint, tiny_profile, corpora={LIST: source}).audit_id == outcome.audit_id
    assert mined.stat().st_ino == before


def test_a_list_that_no_measure_reads_and_one_that_cannot_be_mined_are_refused(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    with pytest.raises(UsageError, match="No chosen measure reads"):
        run(tiny_checkpoint, tiny_profile, measures=["sticky"], corpora={LIST: "sample"})
    with pytest.raises(CorpusError, match="no folder"):
        run(tiny_checkpoint, tiny_profile, corpora={LIST: "mined:bm25:/no/such/folder"})
    assert CORPORA[LIST].relation == "hard_negative"


@pytest.fixture(scope="module")
def undefined(
    prefect_api: str,
    odd_checkpoint: Path,
    tiny_profile: Path,
    tmp_path_factory: pytest.TempPathFactory,
    empty_once: Path,
) -> AuditOutcome:
    """An audit of a corpus and a list with texts whose token vectors average to zero, to be read only."""
    folder = tmp_path_factory.mktemp("undefined")
    texts, listed, profile = folder / "texts.txt", folder / "negatives.jsonl", folder / "profile.toml"
    profile.write_text(
        tiny_profile.read_text().replace("texts = 30", 'texts = 30\ntightness_pairs = 0\ncorpora = ["wikipedia"]')
    )
    texts.write_text("red blue\nred green\nthe sun and the moon\nstone\ngreen red\n" + "river " * 90)
    listed.write_text(
        '{"query": "red blue", "negative": "stone"}\n{"query": "red green", "negative": "stone"}\n'
        '{"query": "the sea", "negative": "red blue"}\n'
    )
    with home_at(folder / "home", empty_once):
        return run(odd_checkpoint, profile, corpora={"wikipedia": str(texts), LIST: str(listed)})


@pytest.mark.slow
def test_an_undefined_text_is_flagged_left_out_and_said(undefined: AuditOutcome) -> None:
    assert rows(
        undefined,
        "SELECT position, is_undefined, trace_sigma IS NULL, exceeds_trace_bound IS NULL, mean_cosine IS NULL, "
        "is_truncated FROM socm_text WHERE corpus = 'wikipedia' ORDER BY 1",
    ) == [
        (0, False, False, False, False, False),
        (1, True, True, True, True, False),
        (2, False, False, False, False, False),
        (3, False, False, False, False, False),
        (4, True, True, True, True, False),
        (5, False, False, False, False, True),
    ]
    assert rows(
        undefined, "SELECT texts, undefined, truncated, one_token, pairs FROM socm_summary WHERE corpus = 'wikipedia'"
    ) == [(4, 2, 1, 0, 6)]
    pairs = rows(undefined, "SELECT first, second FROM socm_pair WHERE corpus = 'wikipedia' ORDER BY ALL")
    assert pairs == [(0, 2), (0, 3), (0, 5), (2, 3), (2, 5), (3, 5)]
    (line,) = [warning for warning in undefined.warnings if "of the texts of wikipedia" in warning]
    assert line == "SOCM left out 2 of the texts of wikipedia, whose token vectors average to zero: number 1, 4."


@pytest.mark.slow
def test_a_listed_pair_with_an_undefined_text_is_left_out(undefined: AuditOutcome) -> None:
    # Numbered as they appear: red blue 0, stone 1, red green 2, the sea 3.
    assert rows(undefined, "SELECT position, first, second FROM socm_listed_pair ORDER BY 1") == [(0, 0, 1), (2, 3, 0)]
    assert rows(undefined, f"SELECT texts, undefined, pairs FROM socm_summary WHERE corpus = '{LIST}'") == [(3, 1, 2)]
    assert any(f"1 of the texts of {LIST}" in warning for warning in undefined.warnings)


def test_a_corpus_of_undefined_texts_is_an_error(
    home: Path, odd_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("red green\ngreen red\nred blue\n")
    with pytest.raises(MeasureError, match="there is 1 text"):
        run(odd_checkpoint, tiny_profile, corpora={"wikipedia": str(texts)})


@pytest.mark.slow
def test_tightness_and_exponents_are_the_profiles_choice(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "small.toml"
    profile.write_text(
        tiny_profile.read_text().replace("texts = 30", "texts = 12\ntightness_pairs = 0\nexponents = [2, 1]")
    )
    outcome = run(tiny_checkpoint, profile)
    assert rows(outcome, "SELECT count(*) FROM socm_tightness") == [(0,)]
    assert rows(outcome, "SELECT DISTINCT alpha, beta FROM socm_surface ORDER BY ALL") == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
    profile.write_text(tiny_profile.read_text().replace("texts = 30", "texts = 12\nexponents = [-1]"))
    with pytest.raises(UsageError, match="exponents must be 0 or more"):
        run(tiny_checkpoint, profile)
