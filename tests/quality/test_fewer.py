"""Large checkpoints read a part of the sample: how much, what is said of it, and that broken ones are still told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from broken_copies import BROKEN, HARMLESS, copy_of_packaged
from tiny import tiny_bert
from torch.utils.flop_counter import FlopCounterMode

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.encoder import counted
from embaudit.checkpoint.memory import multiplied, tokens_within
from embaudit.measures.integrity.function import function_findings
from embaudit.measures.integrity.numerics import HardTexts, full_findings
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.quality import quality_findings
from embaudit.measures.quality.scores import LEAST, OPERATIONS, RULE, fewer
from embaudit.measures.quality.words import of_more, participation_ratio
from embaudit.questions.check import check as checking

sys.path.append(str(Path(__file__).resolve().parent.parent / "anatomy"))
from tiny_families import IDS, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")
# Parameters that a token is multiplied with in BERT base: twelve layers of 12 · 768².
BERT_BASE = 12 * 12 * 768**2


def sizes(material: Material) -> tuple[int, int, int]:
    (pairs,), (judged,) = material.pairs, material.collections
    return len(pairs.scores), len(judged.queries), len(judged.documents)


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "modernbert", "qwen3", "gemma3_text", "gpt_neox", "mpnet"])
def test_a_token_is_multiplied_with_as_many_parameters_as_torch_counts(name: str) -> None:
    model = tiny_model(name)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(input_ids=IDS, attention_mask=torch.ones_like(IDS))
    products = counter.get_flop_counts()["Global"]
    counts = sum(count for kind, count in products.items() if str(kind) in ("aten.mm", "aten.addmm"))
    pooler = sum(one.numel() for part, one in model.named_parameters() if "pooler" in part and one.dim() > 1)
    # A pooler reads one token of each text.
    assert counts == 2 * (IDS.numel() * (multiplied(model) - pooler) + len(IDS) * pooler)


def test_a_wide_network_gets_fewer_tokens_a_batch_and_gives_the_same_vectors(tiny: Checkpoint) -> None:
    def network(width: int) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Embedding(50_000, 8), torch.nn.Linear(8, width, device="meta"))

    # Tables of embeddings are in no batch; BERT base and all smaller ones keep their batches.
    assert [tokens_within(network(width), 2_048) for width in (8, 3_072, 4_864, 14_336)] == [2_048, 2_048, 1_293, 438]
    assert tokens_within(torch.nn.Embedding(5, 2), 2_048) == 2_048
    ids = [[2, *range(5, 5 + length), 3] for length in (3, 1, 9, 4, 6)]
    large, small = (Encoder(tiny, most).encode_ids(ids) for most in (None, 12))
    np.testing.assert_allclose(large, small, atol=1e-6)


def test_checkpoints_of_110_million_parameters_read_the_whole_sample(packaged: Checkpoint) -> None:
    part = fewer(packaged, sample_material())
    assert not part.is_fewer
    assert part.findings() == []
    tokens = part.operations / (2 * part.parameters)
    assert 2 * BERT_BASE * tokens < OPERATIONS < 2 * 2 * BERT_BASE * tokens


@pytest.fixture(scope="module")
def packaged() -> Checkpoint:
    return load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device="cpu"))


@pytest.mark.parametrize(("share", "read"), [(1.0, 1.0), (0.5, 0.5), (0.354, 0.36), (0.01, LEAST)])
def test_the_part_that_is_read_takes_so_many_operations(tiny: Checkpoint, share: float, read: float) -> None:
    sample = sample_material()
    whole = fewer(tiny, sample)
    part = fewer(tiny, sample, whole.operations * share)
    assert sizes(part.read) == tuple(int(size * read) for size in sizes(sample))
    # Of the queries that are read, all texts that answer them are.
    (judged,) = part.read.collections
    (before,) = sample.collections
    for place, query in enumerate(judged.queries):
        assert query == before.queries[place]
        answers = {before.documents[one]: grade for one, grade in before.relevant[place].items()}
        assert {judged.documents[one]: grade for one, grade in judged.relevant[place].items()} == answers
    assert len(part.findings()) == (read < 1)
    figures = part.figures()
    assert [tuple(figures[name].values()) for name in ("read", "of")] == [sizes(part.read), sizes(sample)]


def test_what_somebody_gave_is_read_as_it_is(tiny: Checkpoint) -> None:
    sample = sample_material()
    (pairs,) = sample.pairs
    given = replace(sample, pairs=(replace(pairs, name="mine"),))
    part = fewer(tiny, given, 1.0)
    assert part.read.pairs == given.pairs
    assert len(part.read.collections[0].queries) < len(given.collections[0].queries)
    only = replace(given, collections=())
    assert not fewer(tiny, only, 1.0).is_fewer


def test_the_share_that_is_named_is_missed_once_in_twenty_times(tiny: Checkpoint) -> None:
    part = fewer(tiny, sample_material(), 1.0)
    (finding,) = part.findings()
    assert (finding.level, finding.name) == ("ok", RULE.name)
    assert finding.value == part.unseen
    pairs, queries, documents = sizes(part.read)
    read = f"read {pairs} of 600 pairs, {queries} of 90 queries, {documents} of 270 documents of the embedded sample."
    for said in (read, "2.0 times"):
        assert said in finding.sentence
    assert part.texts == 2 * pairs + queries + documents
    # A fault that touches each text with this probability, over and over.
    draws = np.random.default_rng(0).binomial(part.texts, part.unseen, 200_000)
    assert (draws == 0).mean() == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("width", [40, 120, 300])
def test_directions_of_fewer_texts_are_those_of_the_whole_sample(width: int) -> None:
    spread = np.random.default_rng(1).uniform(0.2, 1.0, width)
    rows = np.random.default_rng(2).standard_normal((1_200, width)) * spread
    whole = participation_ratio(rows)
    for texts in (300, 432, 600):
        few = participation_ratio(rows[:texts])
        assert of_more(few, texts, 1_200) == pytest.approx(whole, rel=0.03)
    assert of_more(whole, 1_200, 1_200) == pytest.approx(whole)
    assert of_more(0.0, 300, 1_200) == 0.0


def test_hard_texts_are_encoded_once(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    alone = function_findings(encoder), full_findings(encoder)
    hard = HardTexts(encoder)
    shared = function_findings(encoder, hard)
    with counted(tiny.model) as batches:
        found, exact = full_findings(encoder, hard)
    assert sum(batches) == 0
    assert [one.sentence for one in (*shared, *found)] == [one.sentence for one in (*alone[0], *alone[1][0])]
    assert exact is not None
    assert alone[1][1] is not None
    np.testing.assert_allclose(exact.vectors, alone[1][1].vectors, atol=1e-6)


@pytest.mark.slow
def test_a_check_says_what_it_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tiny_bert(tmp_path / "model"))
    monkeypatch.setattr(checking, "fewer", partial(fewer, operations=1.0))
    report = checking.check(folder, LoadOptions(device="cpu"))
    assert [one.level for one in report.findings if one.name == RULE.name] == ["ok"]
    assert report.figures["texts"]["read"] == {"pairs": 150, "queries": 22, "documents": 67}
    assert [one["items"] for one in report.figures["data"]] == [150, 22]


# What is broken by its weights or tokens is told by a quarter of the sample, too; a declaration that is wrong takes
# more of it, and so is a dip in a layer. What is then not said to be sound is said to be not known.
TOLD = {
    "all random": {"no_better_than_words", "collapsed"},
    "encoder random": {"no_better_than_words", "collapsed"},
    "layers reversed": {"no_better_than_words"},
    "vocabulary shuffled": {"no_better_than_words"},
    "noise of half the spread": {"no_better_than_words"},
    "cut at 16 tokens": {"cut_texts"},
}
Told = Callable[[str], dict[str, str]]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    def levels(name: str) -> dict[str, str]:
        folder = copy_of_packaged(tmp_path / "copy", (BROKEN | HARMLESS)[name])
        checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
        report = quality_findings(Encoder(checkpoint), sample_material().part(LEAST))
        return {finding.name: finding.level for finding in report.findings}

    return levels


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLD)
def test_a_broken_copy_is_told_by_the_least_that_is_read(told: Told, name: str) -> None:
    found = told(name)
    assert {rule for rule, level in found.items() if level == "problem"} >= TOLD[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_copy_has_no_problem_by_the_least_that_is_read(told: Told, name: str) -> None:
    assert "problem" not in told(name).values()
