"""Temperatures through the audit flow: a checkpoint that one helps, one that it does not, one that takes none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from commands import Embaudit
from judged_collections import write_collection
from planned import assert_planned
from some_rows import mostly_slow
from tiny import ENGLISH, tiny_bert
from warehouse_rows import rows

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.corpora.load import load_corpus
from embaudit.questions.audit import AuditRequest
from embaudit.remedies.temperature import temperature
from embaudit.words.errors import UsageError
from embaudit_flows.audit import AuditOutcome, audit

SIGNALS = {"a": "red", "b": "green"}
NOISE = [word for word in ENGLISH.split() if word not in SIGNALS.values()]


def readable(folder: Path, logit: float, noise: float | None = None) -> Path:
    """A real BERT whose last layer reads "red" and "green" more than other words, by ``logit`` or so.

    One token of forty says the class. Everything but that layer's attention adds nothing, so that the vector is the
    attention-weighted mean of word embeddings: a lower temperature reads the word that counts more, or less.
    The class is in the first head's dimensions; the others may read ``noise``.
    """
    import torch
    from transformers import BertModel, PreTrainedTokenizerFast

    tiny_bert(folder)
    model = BertModel.from_pretrained(folder, add_pooling_layer=False)
    ids = PreTrainedTokenizerFast.from_pretrained(folder).get_vocab()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "LayerNorm" not in name and "word_embeddings" not in name:
                parameter.zero_()
        words = model.embeddings.word_embeddings.weight
        words[:, :3] = 0
        for place, word in enumerate(SIGNALS.values()):
            words[ids[word]] = 0
            words[ids[word], place] = words[ids[word], 2] = 4
        attention = model.encoder.layer[1].attention
        attention.self.value.weight.copy_(torch.eye(32))
        attention.output.dense.weight.copy_(10 * torch.eye(32))
        for head in range(4):
            reads_noise = noise is not None and head > 0
            attention.self.query.bias[8 * head] = 8**0.5 * (noise if reads_noise else logit) / 3.8
            # Of other words, those that say most in the head's own dimensions: a sharper head averages less away.
            attention.self.key.weight[8 * head, 8 * head + 1 if reads_noise else 2] = 1
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("texts") / "labelled.jsonl"
    rows = []
    for i in range(160):
        label = "ab"[i % 2]
        words = [str(word) for word in generator.choice(NOISE, 39)]
        words.insert(int(generator.integers(0, 40)), SIGNALS[label])
        rows.append(json.dumps({"text": " ".join(words), "label": label}))
    path.write_text("\n".join(rows))
    return path


def ask(checkpoint: Path, corpora: dict[str, str], **changes: Any) -> AuditOutcome:
    changes = {"corpora": list(corpora), "grid": [0.9, 0.5], "resamples": 200, **changes}
    asked = {"measures": ["tempscale"], "corpora": corpora, "device": "cpu", "measure_settings": {"tempscale": changes}}
    return audit(AuditRequest(checkpoint=str(checkpoint), **asked))


@pytest.mark.slow
def test_a_checkpoint_that_a_temperature_helps(home: Path, labelled: Path, tmp_path: Path) -> None:
    folder = readable(tmp_path / "helped", logit=0.5)
    outcome = ask(folder, {"longdocs": str(labelled)})
    assert_planned(outcome)
    answers = rows(outcome, "SELECT task, recommendation, tau, low > 0, items FROM tempscale_choice WHERE bin = 0")
    assert sorted(answers) == [
        ("classification_knn", "yes", 0.5, True, 80),
        ("classification_logistic", "yes", 0.5, True, 80),
        ("clustering", "yes", 0.5, True, 80),
    ]
    scope = rows(outcome, "SELECT DISTINCT corpus, reads, max_tokens FROM tempscale")
    assert scope == [("longdocs", "limit", 64)]
    # The arm `none` is the checkpoint as anyone encodes with it: bit for bit.
    staged = sorted(home.glob("staging/tempscale/*/tempscale_vectors-*.parquet"))
    assert len(staged) == 4  # three temperatures, and the pieces
    texts = {text.text for text in load_corpus("longdocs", str(labelled)).texts}
    encoder = Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu")))
    materials = sorted(home.glob("staging/downstream/*/task_material-*.parquet"))
    picked = [text for (text,) in duckdb.sql(f"SELECT text FROM '{materials[0]}' ORDER BY place").fetchall()]
    assert set(picked) == texts
    plain = [vector.tobytes() for vector in encoder.encode_texts(picked)]
    found = [
        [vector for (vector,) in duckdb.sql(f"SELECT vector FROM '{path}' ORDER BY place").fetchall()]
        for path in staged
    ]
    # And so are pieces averaged, where every text is one piece.
    assert found.count(plain) == 2
    with temperature(encoder.checkpoint, 1.0):
        assert [vector.tobytes() for vector in encoder.encode_texts(picked)] == plain
    # Asked again, nothing is computed anew; another grid encodes only what is new.
    written = {path: path.stat().st_ino for path in staged}
    assert ask(folder, {"longdocs": str(labelled)}).audit_id == outcome.audit_id
    other = ask(folder, {"longdocs": str(labelled)}, grid=[0.9, 0.7, 0.5])
    assert other.audit_id != outcome.audit_id
    after = {path: path.stat().st_ino for path in home.glob("staging/tempscale/*/tempscale_vectors-*.parquet")}
    assert len(after) == 5
    assert written.items() <= after.items()


@pytest.mark.slow
def test_heads_that_want_different_temperatures_get_them(
    home: Path, labelled: Path, tmp_path: Path, embaudit: Embaudit
) -> None:
    folder = readable(tmp_path / "heads", logit=0.5, noise=4.0)
    outcome = ask(folder, {"longdocs": str(labelled)}, grid=[0.9, 0.7, 0.5], by=["layer", "head"])
    assert_planned(outcome)
    found = {
        (task, part): (taus, recommendation)
        for task, part, taus, recommendation in rows(
            outcome, "SELECT task, part, taus, recommendation FROM tempscale_search"
        )
    }
    assert {part for _, part in found} == {"layer", "head"}
    assert len(found) == 6
    # The layer below does nothing, and what changes nothing is no gain.
    assert found["classification_logistic", "layer"] == ("0.5,0.5", "no")
    # The first head reads the class, the others noise.
    taus, recommendation = found["classification_logistic", "head"]
    assert recommendation == "yes"
    first, *others = map(float, taus.split(","))
    assert first == 0.5 < max(others)
    advice = f"embaudit apply-temperature CHECKPOINT --head-tau {taus} --out DIR"
    assert advice in [finding["advice"] for finding in outcome.findings]
    # What is advised scores what was said.
    ((said,),) = rows(
        outcome,
        "SELECT score_after FROM tempscale_search WHERE (task, part) = ('classification_logistic', 'head')",
    )
    made = tmp_path / "made"
    assert embaudit("apply-temperature", str(folder), "--head-tau", taus, "--out", str(made)).returncode == 0
    again = ask(made, {"longdocs": str(labelled)}, grid=[1.0])
    assert rows(
        again,
        f"SELECT score FROM tempscale WHERE audit_id = '{again.audit_id}' AND task = 'classification_logistic' "
        "AND bin = 0 AND split = 'report' AND arm = 'none'",
    ) == [(pytest.approx(said, abs=0.02),)]


@pytest.mark.slow
def test_layers_that_share_their_weights_have_no_temperatures_of_their_own(home: Path, tmp_path: Path) -> None:
    tests = Path(__file__).resolve().parents[1]
    sys.path += [str(tests / "anatomy"), str(tests / "tempscale")]
    from checkpoint_folders import save_tiny

    asked = {"pairs": 60, "grid": [0.5], "by": ["layer", "head"]}
    outcome = ask(save_tiny(tmp_path / "albert", "albert"), {"sts": "sample"}, **asked)
    (warning,) = [one for one in outcome.warnings if "by layer" in one]
    assert warning.startswith("Skipped temperatures by layer on sts: Layers 0 and 1 share ")
    assert rows(outcome, "SELECT task, part FROM tempscale_search") == [("sts", "head")]


@pytest.mark.slow
def test_a_checkpoint_that_a_temperature_harms(home: Path, labelled: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    rare = [json.dumps({"text": f"river {i}", "label": "rare"}) for i in range(3)]
    more.write_text("\n".join([labelled.read_text(), *rare]))
    outcome = ask(readable(tmp_path / "harmed", logit=-0.7), {"longdocs": str(more)})
    assert "Tasks on longdocs leave out classes of fewer than 10 texts: rare." in outcome.warnings
    assert rows(outcome, "SELECT DISTINCT recommendation FROM tempscale_choice") == [("no",)]


def beir(folder: Path, words: list[str]) -> Path:
    """Forty documents, twenty-four queries, one relevant document each."""
    generator = np.random.default_rng(0)
    documents = [" ".join(map(str, generator.choice(words, 30))) for _ in range(40)]
    return write_collection(folder, documents, [" ".join(text.split()[:4]) for text in documents[:24]])


@pytest.mark.slow
def test_a_family_that_takes_no_temperature_keeps_its_baselines(home: Path, tmp_path: Path) -> None:
    tests = Path(__file__).resolve().parents[1]
    sys.path += [str(tests / "anatomy"), str(tests / "tempscale")]
    from checkpoint_folders import save_tiny

    folder = beir(tmp_path / "beir", list("abcdefghijklmnopqrstuvwxyz"))
    outcome = ask(save_tiny(tmp_path / "gemma2", "gemma2"), {"retrieval": str(folder)})
    assert rows(outcome, "SELECT DISTINCT recommendation, tau FROM tempscale_choice") == [("unsupported", None)]
    ((reason,),) = rows(outcome, "SELECT DISTINCT reason FROM tempscale_choice")
    assert "tanh" in reason
    arms = rows(outcome, "SELECT arm, score IS NOT NULL FROM tempscale WHERE bin = 0 AND split = 'report' ORDER BY 1")
    assert arms == [("centring", True), ("chunk_average", True), ("none", True), ("whitening", True)]
    named = rows(outcome, "SELECT name FROM audit_corpus ORDER BY 1")
    assert named == [("retrieval",), ("retrieval-queries",)]


@pytest.mark.slow
def test_documents_can_be_read_up_to_the_position_table(home: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    folder = beir(tmp_path / "beir", [f"{word} {word} {word}" for word in NOISE])
    shorter = {"retrieval": str(folder)}
    served = ask(tiny_checkpoint, shorter)
    whole = ask(tiny_checkpoint, shorter, reads="positions")
    found = {
        reads: (limit, score, pieces)
        for reads, limit, score, pieces in rows(
            whole,
            "SELECT reads, max_tokens, max(score) FILTER (arm = 'none'), max(score) FILTER (arm = 'chunk_average') "
            "FROM tempscale WHERE bin = 0 AND split = 'report' GROUP BY 1, 2",
        )
    }
    assert found["limit"][0] == 64
    assert found["positions"][0] == 128
    # Pieces are of the configured limit either way; what a text is read to changes its vector.
    assert found["limit"][2] == found["positions"][2]
    assert found["limit"][1] != found["positions"][1]
    assert served.audit_id != whole.audit_id


@pytest.mark.slow
def test_what_allows_no_task_is_a_line_and_the_others_run(home: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    alike = tmp_path / "alike.jsonl"
    alike.write_text("\n".join(json.dumps({"text": f"river {i}", "label": "a"}) for i in range(30)))
    outcome = ask(tiny_checkpoint, {"longdocs": str(alike), "sts": "sample"}, pairs=60, grid=[0.5])
    (warning,) = [one for one in outcome.warnings if "Skipped" in one]
    assert warning.startswith("Skipped temperatures on longdocs: 1 class among 30 labelled texts")
    assert rows(outcome, "SELECT DISTINCT task FROM tempscale_choice") == [("sts",)]


@pytest.mark.parametrize("tau", mostly_slow([0.0, -0.5, float("nan"), float("inf")], 1))
def test_a_temperature_that_is_none_is_refused(home: Path, tiny_checkpoint: Path, tau: float) -> None:
    with pytest.raises(UsageError, match="must be greater than 0"):
        ask(tiny_checkpoint, {"sts": "sample"}, grid=[1.0, tau])


@pytest.mark.slow
def test_the_command_answers_and_refuses(embaudit: Embaudit, tiny_checkpoint: Path) -> None:
    refused = embaudit("tempscale", str(tiny_checkpoint), "--tau", "1,0")
    assert refused.returncode == 2
    assert "greater than 0" in refused.stderr
    unknown = embaudit("tempscale", str(tiny_checkpoint), "--corpus", "wikipedia=sample")
    assert (unknown.returncode, "longdocs, retrieval, sts" in unknown.stderr) == (2, True)
    found = embaudit("tempscale", str(tiny_checkpoint), "--corpus", "sts=sample", "--tau", "1,0.8")
    assert found.returncode == 0, found.stderr
    assert "Does a lower attention temperature help? Documents read up to 64 tokens, as served" in found.stdout
    assert "averaged chunks" in found.stdout
