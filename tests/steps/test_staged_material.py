"""What a task is given, from the files of a corpus through staging: own documents and data sets are not lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import ENGLISH, tiny_bert

from embaudit.corpora import load_corpus
from embaudit.corpora.downstream.material import GradedPairs, Judgements
from embaudit.corpora.judged import load_judged
from embaudit.measures.impact import ImpactSettings
from embaudit.measures.task_material import read_material, task_material
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec
from embaudit_flows.plan import plan_audit

WORDS = ENGLISH.split()


@pytest.fixture
def spec(home: Path, tmp_path_factory: pytest.TempPathFactory) -> CheckpointSpec:
    folder = tiny_bert(tmp_path_factory.mktemp("checkpoint") / "bert")
    return plan_audit(AuditRequest(checkpoint=str(folder), device="cpu")).spec


def test_a_querys_own_document(spec: CheckpointSpec, tmp_path: Path) -> None:
    folder = tmp_path / "arguments"
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": f"a{i}", "text": WORDS[i]}) + "\n" for i in range(12)]
    (folder / "corpus.jsonl").write_text("".join(rows))
    (folder / "queries.jsonl").write_text("".join(rows[:6]))
    (folder / "qrels" / "test.tsv").write_text("".join(f"a{i}\ta{i + 6}\t1\n" for i in range(6)))
    judged = load_judged(str(folder))
    corpora = [stage_corpus(one, str(tmp_path)) for one in (judged.documents, judged.queries)]
    (material,) = task_material.compute(str(tmp_path), spec, corpora, ImpactSettings(), 0)
    found, _ = read_material(material)
    assert isinstance(found, Judgements)
    for query, relevant, own in zip(found.queries, found.relevant, found.own, strict=True):
        assert [found.documents[place] for place in own] == [query]
        assert [found.documents[place] for place in relevant] == [WORDS[WORDS.index(query) + 6]]


def test_the_data_set_of_a_pair(spec: CheckpointSpec, tmp_path: Path) -> None:
    folder = tmp_path / "sts"
    folder.mkdir()
    for name, top in (("five", 5), ("one", 1)):
        lines = [f"{top * i / 8}\t{WORDS[i]} {name}\t{WORDS[i + 1]}\n" for i in range(8)]
        (folder / f"{name}.tsv").write_text("".join(lines))
    corpora = [stage_corpus(load_corpus("sts", str(folder)), str(tmp_path))]
    (material,) = task_material.compute(str(tmp_path), spec, corpora, ImpactSettings(), 0)
    found, _ = read_material(material)
    assert isinstance(found, GradedPairs)
    assert [first.split()[1] for first in found.firsts] == list(found.data_sets)
    assert sorted(found.data_sets) == ["five"] * 8 + ["one"] * 8
