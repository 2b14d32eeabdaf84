"""Mitigation through the audit flow: every remedy on a task, scored as by hand; page, finding, query, command."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from commands import Embaudit
from planned import assert_planned
from small_audits import AuditOnce, answered, shown
from tiny import ENGLISH

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.measures.impact.arms import poison
from embaudit.measures.mitigation import REMEDIES
from embaudit.measures.sticky.inspect import find_token
from embaudit.remedies.mitigation.write import write_mitigated
from embaudit_flows.audit import AuditOutcome

pytestmark = pytest.mark.slow

WORDS = ENGLISH.split()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, float]]:
    generator = np.random.default_rng(1)
    firsts, seconds = ([" ".join(map(str, generator.choice(WORDS, 6))) for _ in range(60)] for _ in range(2))
    return [(first, second, float(i % 6)) for i, (first, second) in enumerate(zip(firsts, seconds, strict=True))]


@pytest.fixture(scope="module")
def outcome(
    audit_once: AuditOnce, pairs: list[tuple[str, str, float]], tmp_path_factory: pytest.TempPathFactory
) -> AuditOutcome:
    """An audit of what helps against two tokens, to be read only."""
    folder = tmp_path_factory.mktemp("mitigation")
    rows = [json.dumps({"sentence1": a, "sentence2": b, "score": score}) for a, b, score in pairs]
    (folder / "sts.jsonl").write_text("\n".join(rows))
    return audit_once(
        measures=["mitigation"],
        corpora={"sts": str(folder / "sts.jsonl")},
        measure_settings={"mitigation": {"tokens": ["river", "town"], "corpora": ["sts"], "resamples": 100}},
    )


def test_scores_are_those_of_the_written_checkpoint(
    outcome: AuditOutcome, tiny_checkpoint: Path, pairs: list[tuple[str, str, float]], tmp_path: Path
) -> None:
    import scipy

    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
        rows = {row["remedy"]: row for row in connection.execute("FROM mitigation").df().to_dict("records")}
        losses = {row["remedy"]: row for row in connection.execute("FROM mitigation_loss").df().to_dict("records")}
        tokens = connection.execute("SELECT count(*) FROM mitigation_token").fetchone()
    assert rows.keys() == losses.keys() == {"none", *REMEDIES}
    assert tokens == (2 * len(rows),)
    source = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu")))
    river, town = (find_token(source.checkpoint, name) for name in ("river", "town"))
    write_mitigated(str(tiny_checkpoint), {river, town}, "mean", tmp_path / "mean", device="cpu")
    repaired = Encoder(load_checkpoint(str(tmp_path / "mean"), LoadOptions(device="cpu")))

    def spearman(encoder: Encoder, token: int | None) -> float:
        sides = []
        for texts in zip(*((a, b) for a, b, _ in pairs), strict=True):
            held = encoder.tokenize(texts) if token is None else poison(source, texts, token, 0).sequences
            vectors = encoder.encode_ids(held).astype(float)
            sides.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        cosines = (sides[0] * sides[1]).sum(axis=1)
        return float(scipy.stats.spearmanr(cosines, [score for *_, score in pairs]).statistic)

    for remedy, encoder in (("none", source), ("mean", repaired)):
        assert rows[remedy]["clean"] == pytest.approx(spearman(encoder, None), abs=1e-6)
        poisoned = np.mean([spearman(encoder, token) for token in (river, town)])
        assert rows[remedy]["poisoned"] == pytest.approx(poisoned, abs=1e-6)
    assert rows["mean"]["poisoned_change"] == pytest.approx(rows["mean"]["poisoned"] - rows["none"]["poisoned"])
    holding = sum(bool({"river", "town"} & {*text.split()}) for a, b, _ in pairs for text in (a, b))
    assert {remedy: row["touched"] for remedy, row in rows.items()} == {
        **dict.fromkeys(("none",), 0),
        **dict.fromkeys(("strip", "prune", "unk", "mean", "scale"), holding),
        **dict.fromkeys(("centring", "components", "whitening"), 120),
    }
    assert losses["whitening"]["fitted_on"] == 120
    assert_planned(outcome)


def test_the_page_the_finding_and_the_queries(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    (found,) = [row for row in outcome.findings if row["measure"] == "mitigation"]
    assert found["name"] == "remedy_spearman"
    assert "What helps against sticky tokens" in shown(embaudit_here, outcome)
    for name in ("mitigation", "mitigation-losses"):
        rows = answered(embaudit_here, outcome, name)
        assert rows[0]["remedy"] == "none"
        assert len(rows) == 1 + len(REMEDIES)
