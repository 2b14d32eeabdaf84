"""What config.json says of the network, beside the base's: a flag that is lost moves every vector, and no weight."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from change_copies import FolderChange, compared, copy_of, jittered, json_file
from some_rows import mostly_slow
from tiny_models import build, declare, load, pooling

from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import Material
from embaudit.questions.change.declared import compare_configs
from embaudit.questions.parity.parity import compare_with


def without(*names: str) -> FolderChange:
    def write(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({k: v for k, v in content.items() if k not in names}))

    return write


def having(**settings: Any) -> FolderChange:
    return json_file("config.json", **settings)


# (the family, what the base's config.json has, what was done to the copy's, the setting that is named)
LOST: dict[str, tuple[str, FolderChange, FolderChange, str]] = {
    "activation": ("bert", having(hidden_act="relu"), having(hidden_act="gelu"), "hidden_act"),
    "activation lost": ("bert", having(hidden_act="relu"), without("hidden_act"), "hidden_act"),
    "epsilon": ("bert", having(layer_norm_eps=0.5), without("layer_norm_eps"), "layer_norm_eps"),
    "direction": ("bert", having(is_decoder=False), having(is_decoder=True), "is_decoder"),
    "rotary base": (
        "llama",
        having(rope_theta=50.0, rope_parameters={"rope_type": "default", "rope_theta": 50.0}),
        without("rope_theta", "rope_parameters"),
        "rope_theta",
    ),
    "heads": ("bert", having(num_attention_heads=4), having(num_attention_heads=8), "num_attention_heads"),
}
# What nothing depends on.
OF_NO_MATTER: dict[str, FolderChange] = {
    "versions": having(transformers_version="9.9.9", torch_dtype="bfloat16", _name_or_path="elsewhere"),
    "training": having(hidden_dropout_prob=0.4, attention_probs_dropout_prob=0.0, initializer_range=0.5),
    "heads of classifiers": having(id2label={"0": "a", "1": "b", "2": "c"}, problem_type="regression"),
    "defaults written out": without("layer_norm_eps", "hidden_act"),
}


def base_of(family: str, folder: Path, change: FolderChange) -> Path:
    declare(build(family, folder), pooling("mean"), ("Normalize", {}))
    change(folder)
    return folder


@pytest.mark.parametrize("name", mostly_slow(LOST, 2))
def test_a_line_that_is_lost_is_the_reason(name: str, tmp_path: Path) -> None:
    family, has, change, named = LOST[name]
    base = base_of(family, tmp_path / "base", has)
    tuned = copy_of(base, tmp_path / "tuned", change)
    findings = {finding.name: finding for finding in compared(tuned, base).findings}
    assert findings["computes_otherwise"].level == "problem"
    assert named in findings["computes_otherwise"].sentence
    assert "nothing_changed" not in findings, "that no weight has changed is right"
    report = compare_with(CheckpointFunction(load(base)), CheckpointFunction(load(tuned)), Material())
    assert report.verdict == "another function"
    # What another use of the checkpoint makes up for, has that name.
    assert named in report.line or (report.explanation is not None and report.explanation.is_complete)
    assert "No way" not in report.line


@pytest.mark.parametrize("name", OF_NO_MATTER)
def test_what_no_vector_depends_on_is_no_difference(name: str, tmp_path: Path) -> None:
    base = base_of("bert", tmp_path / "base", having())
    tuned = copy_of(base, tmp_path / "tuned", OF_NO_MATTER[name])
    assert compare_configs(load(tuned), load(base)) == []
    names = {finding.name: finding.level for finding in compared(tuned, base).findings}
    assert names["nothing_changed"] == "problem"
    assert "computes_otherwise" not in names


@pytest.mark.parametrize(
    "change", [having(), having(hidden_act="relu")], ids=["as the base", "with another activation"]
)
def test_of_a_tuned_one_it_is_to_be_looked_at(change: Callable[[Path], object], tmp_path: Path) -> None:
    base = base_of("bert", tmp_path / "base", having())
    tuned = copy_of(base, tmp_path / "tuned", jittered(), change)
    found = [one.level for one in compared(tuned, base).findings if one.name == "computes_otherwise"]
    assert found in ([], ["look"])
    assert bool(found) == ("relu" in (tuned / "config.json").read_text())
