"""``embaudit check`` and ``embaudit.check``, on a sound checkpoint and on broken ones."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import run_here
from real_tokenizers import packaged_checkpoint
from tiny import tiny_bert
from tiny_models import change_tensors

import embaudit
from embaudit.checkpoint import load_checkpoint
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.check import check as checking
from embaudit.questions.check.check import check


def embaudit_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_here(arguments, {**os.environ, "HF_HUB_OFFLINE": "1"}, Path.cwd())


@pytest.mark.slow
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_sound_checkpoint_may_be_served(is_whole: bool) -> None:
    packaged_checkpoint()  # skips where it is missing
    sample = sample_material()
    part = Material(tuple(some.first(100) for some in sample.pairs), (sample.collections[0].first(30, 60)[0],))
    sound = check("packaged:all-MiniLM-L6-v2", material=sample if is_whole else part)
    assert sound.cause is None
    assert sound.verdict in ("nothing found wrong", "look first")
    assert [finding.name for finding in sound.findings if finding.level == "problem"] == []
    # Every part has said something.
    names = {finding.name for finding in sound.findings}
    assert {"one_function", "norm", "no_better_than_words", "score_scale"} <= names


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "no weights"),
        (lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs"), "git-lfs pointer"),
        (shutil.rmtree, "Unknown checkpoint"),
    ],
    ids=["no weights", "pointer", "no folder"],
)
def test_what_cannot_be_loaded_gets_a_verdict_too(
    change: object, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny_bert(tmp_path / "broken")
    change(folder)  # type: ignore[operator]
    result = embaudit_here("check", str(folder), "--json")
    assert result.returncode == 1
    said = json.loads(result.stdout)
    assert said["verdict"] == "do not serve"
    assert said["cause"] == "not_loadable"
    assert words in said["line"]


@pytest.mark.parametrize(
    "form",
    [
        ("--json", "--out", "page.html"),
        *(pytest.param(form, marks=pytest.mark.slow) for form in (("--markdown",), ())),
    ],
)
def test_a_random_network_may_not_and_every_form_says_so(
    form: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = embaudit_here("check", str(tiny_bert(tmp_path / "random")), *form)
    assert result.returncode == 1
    assert "Do not serve" in result.stdout  # the colon is escaped in Markdown
    if "--json" in form:
        said = json.loads(result.stdout)
        assert said["verdict"] == "do not serve"
        assert said["cause"] is not None
        assert said["line"].startswith("Do not serve: ")
        assert said["findings"][0]["level"] == "problem"
        assert "Do not serve: " in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_model_in_memory_is_checked_as_it_would_be_saved(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="checks a loaded SentenceTransformer")
    model = sentence_transformers.SentenceTransformer(str(tiny_bert(tmp_path / "random")), device="cpu")
    report = embaudit.check(model, device="cpu")
    assert report.checkpoint == "the model in memory"
    assert report.verdict == "do not serve"


@pytest.mark.slow
def test_what_changed_against_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = tiny_bert(tmp_path / "base")
    other = tiny_bert(tmp_path / "tuned", seed=1)
    result = embaudit_here("check", str(other), "--base", str(base), "--json", "--out", "page.html")
    said = json.loads(result.stdout)
    assert said["base"] == str(base)
    # What is known of the checkpoint is said before the base is loaded; the whole verdict is the same one.
    (early,) = (line for line in result.stderr.splitlines() if line.startswith(f"{other}: "))
    assert early.startswith(f"{other}: {said['line']}")
    assert early.endswith(f" What has changed against {base} comes next.")
    names = {finding["name"] for finding in said["findings"]}
    assert {"replaced_blocks", "same_tokens", "same_reading", "vectors_moved"} <= names
    change = said["measured"]["change"]
    assert [block["name"] for block in change["weights"]["blocks"]] == [
        "embeddings",
        "encoder.layer.0",
        "encoder.layer.1",
    ]
    assert {one["metric"] for one in change["data"]} == {"Spearman's ρ", "nDCG@10"}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in (f"Against {base}", "What moved in the weights, by block", "Scores side by side", "encoder.layer.1"):
        assert words in page


@pytest.mark.slow
def test_the_base_itself_is_no_tuned_checkpoint(tmp_path: Path) -> None:
    """Also from Python, with a folder as the base; given pairs are told from the sample, which is read as well."""
    base = tiny_bert(tmp_path / "base")
    copy = shutil.copytree(base, tmp_path / "copy")
    pairs = tmp_path / "pairs.csv"
    rows = [f"the river {n} is long,the old river {n} is very long,{n % 6}" for n in range(60)]
    pairs.write_text("\n".join(["sentence1,sentence2,score", *rows]), encoding="utf-8")
    report = embaudit.check(copy, base=base, pairs=[pairs], device="cpu")
    assert report.base == str(base)
    levels = {finding.name: finding.level for finding in report.findings}
    assert levels["nothing_changed"] == "problem"
    data = report.figures["change"]["data"]
    assert [one["is_given"] for one in data] == [True, False, False]
    assert "pairs.csv" in json.dumps(report.figures["data"])
    assert all(one["gain"]["value"] == 0 for one in data)


@pytest.mark.slow
def test_a_checkpoint_and_its_base_are_in_memory_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In half precision, so that a model in float32 is a copy, and one that stays in its file is not."""
    models: list[weakref.ref[torch.nn.Module]] = []
    alive: list[int] = []

    def watched(*asked: Any, **how: Any) -> Any:
        gc.collect()
        alive.append(sum(one() is not None for one in models))
        loaded = load_checkpoint(*asked, **how)
        models.append(weakref.ref(loaded.model))
        return loaded

    base = tiny_bert(tmp_path / "base")
    change_tensors(base / "model.safetensors", lambda found: {name: one.bfloat16() for name, one in found.items()})
    tuned = shutil.copytree(base, tmp_path / "tuned")
    change_tensors(tuned / "model.safetensors", lambda found: found["encoder.layer.0.output.dense.weight"].add_(0.5))
    monkeypatch.setattr(checking, "load_checkpoint", watched)
    report = checking.check(str(tuned), base=str(base))
    assert alive == [0, 0]
    assert not [one.sentence for one in report.findings if one.name.endswith("_could_not_run")]
    moved = {one["name"]: one["status"] for one in report.figures["change"]["weights"]["tensors"]}
    assert [name for name, status in moved.items() if status != "same"] == ["encoder.layer.0.output.dense.weight"]
    assert max(one["most"] for one in report.figures["change"]["vectors"]) > 1e-6


@pytest.mark.slow
def test_a_base_that_cannot_be_loaded_is_never_passed_over(tmp_path: Path) -> None:
    tuned, base = tiny_bert(tmp_path / "tuned"), tiny_bert(tmp_path / "base")
    (base / "model.safetensors").unlink()
    report = check(str(tuned), base=str(base))
    (finding,) = (one for one in report.findings if one.name.endswith("could_not_run"))
    assert finding.level == "not measured"
    assert "no weights" in finding.sentence
    # The rest was checked.
    assert "one_function" in {one.name for one in report.findings}


@pytest.mark.slow
def test_a_tuning_of_the_packaged_checkpoint(tmp_path: Path) -> None:
    """A few real steps on pairs of sentences: it may be served, and what moved is said."""
    import torch

    sentence_transformers = pytest.importorskip("sentence_transformers", reason="tunes a SentenceTransformer")
    source = packaged_checkpoint()
    model = sentence_transformers.SentenceTransformer(str(source), device="cpu")
    model[0].auto_model.embeddings.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=2e-5)
    texts = ["The river is long.", "A town in the north.", "Gold and iron.", "The king had no ships."]
    for _ in range(4):
        given = model.preprocess(texts) if hasattr(model, "preprocess") else model.tokenize(texts)
        vectors = model(given)["sentence_embedding"]
        (vectors @ vectors.T).pow(2).mean().backward()
        optimiser.step()
        optimiser.zero_grad()
    report = embaudit.check(model.eval(), base="packaged:all-MiniLM-L6-v2", device="cpu")
    assert report.verdict != "do not serve"
    by_name = {finding.name: finding for finding in report.findings}
    assert "embeddings stands still" in by_name["weights_changed"].sentence
    assert by_name["vectors_moved"].value is not None
    assert 1e-6 < by_name["vectors_moved"].value < 0.1
    assert by_name["same_tokens"].level == by_name["same_reading"].level == "ok"
