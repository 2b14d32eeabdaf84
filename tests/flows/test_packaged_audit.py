"""A real checkpoint from the command to its tables."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path

import duckdb
import pytest
from commands import Embaudit

from embaudit.checkpoint import Checkpoint, resolve

PACKAGED = "packaged:all-MiniLM-L6-v2"
# All measures of the real model on few texts.
PROFILE = """
name = "small"
version = 1
description = "for tests"
[sticky]
sentences = 60
draws = 4
validation_draws = 10
scan_encodes = 2400
max_shortlist = 8
controls = 10
resamples = 100
dose_tokens = 0
shift_tokens = 0
attention_tokens = 0
basis = "screened"
[socm]
texts = 12
tightness_pairs = 4
[layers]
texts = 4
[length]
texts = 6
control_texts = 2
sigma_texts = 2
"""


VOCABULARY = 2_200


@pytest.fixture
def first_tokens(minilm: Checkpoint, tmp_path: Path) -> Path:
    """The packaged checkpoint with the first tokens of its vocabulary: real weights, u in little time."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "first-tokens"
    shutil.copytree(resolve(PACKAGED).folder, folder)
    weights = load_file(folder / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    weights[name] = weights[name][:VOCABULARY].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {token: place for token, place in vocabulary.items() if place < VOCABULARY}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "vocab.txt").write_text("\n".join(list(vocabulary)[:VOCABULARY]))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": VOCABULARY}))
    return folder


def audited(embaudit: Embaudit, checkpoint: str, folder: Path) -> str:
    """What the command prints; the tables are looked at by ``rows``."""
    (folder / "small.toml").write_text(PROFILE)
    done = embaudit("audit", checkpoint, "--profile", "small.toml", "--set", "sticky.limit_tokens=120", "--full")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"^This takes about [\d.]+ (s|min)", done.stderr, re.MULTILINE)
    assert "INFO" not in done.stderr
    return done.stdout


def rows(home: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def check_tables(home: Path, source: str, tokens: int) -> None:
    assert rows(home, "SELECT source, status FROM audit JOIN checkpoint USING (checkpoint_id)") == [
        (source, "published")
    ]
    assert rows(home, "SELECT count(*) FROM token") == [(tokens,)]
    assert rows(home, "SELECT count(*) FROM sticky_score") == [(120,)]
    assert rows(home, "SELECT corpus, pairs FROM socm_summary ORDER BY ALL") == [("msmarco", 66), ("wikipedia", 66)]
    layers = [(layer,) for layer in range(6)]
    assert rows(home, "SELECT DISTINCT layer FROM layer_stat ORDER BY ALL") == layers
    assert rows(home, "SELECT count(*) FROM length_summary") == [(1,)]
    assert rows(home, "SELECT count(*) FROM expectation_result WHERE NOT success AND severity = 'critical'") == [(0,)]


@pytest.mark.slow
def test_real_weights_are_audited_with_everything(
    embaudit_here: Embaudit, home: Path, tmp_path: Path, first_tokens: Path
) -> None:
    said = audited(embaudit_here, str(first_tokens), tmp_path)
    assert str(home / "warehouse.duckdb") in said
    check_tables(home, str(first_tokens), VOCABULARY)
    ((u,),) = rows(home, "SELECT DISTINCT u FROM sticky_summary")
    assert f"u = {u:.4f}" in " ".join(said.split())
    # Measured once, as the whole vocabulary's 0.19985.
    assert u == pytest.approx(0.44004, abs=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("minilm")
def test_the_packaged_checkpoint_is_audited_with_its_own_u(embaudit: Embaudit, home: Path, tmp_path: Path) -> None:
    # In a process of its own, as a person starts one.
    assert "u = 0.1998" in audited(partial(embaudit, timeout=900), PACKAGED, tmp_path)
    check_tables(home, PACKAGED, 30_522)
    assert rows(home, "SELECT DISTINCT u FROM sticky_summary") == [(pytest.approx(0.19985, abs=1e-5),)]
