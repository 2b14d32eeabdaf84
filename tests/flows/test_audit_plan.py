"""What a request becomes: ids and keys that hold everything that a result depends on, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_hub import COMMIT, FakeHub
from tiny import tiny_bert

from embaudit.cli.options import parse_measure_settings
from embaudit.corpora.draw import Draw
from embaudit.measures.listed import load_profile
from embaudit.questions.audit import AuditRequest
from embaudit.steps.results import encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import UsageError
from embaudit_flows.audit import checkpoint_row
from embaudit_flows.plan import KEPT_ROWS, plan_audit


def test_a_precision_that_was_asked_for_is_another_audit(home: Path, tiny_checkpoint: Path) -> None:
    by_itself, float32, bfloat16 = (
        plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), device="cpu", dtype=dtype)).audit_id({})
        for dtype in ("auto", "float32", "bfloat16")
    )
    assert by_itself == float32 != bfloat16


@pytest.mark.parametrize("saved", ["float16", "bfloat16"])
@pytest.mark.parametrize(("asked", "planned"), [("auto", "float32"), ("bfloat16", "bfloat16")])
def test_on_a_gpu_what_was_saved_in_half_precision_is_measured_in_float32_unless_asked_for(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: str, asked: str, planned: str
) -> None:
    import torch
    from transformers import BertModel

    folder = tiny_bert(tmp_path / "bert")
    BertModel.from_pretrained(folder, dtype=getattr(torch, saved)).save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["dtype"] == saved
    monkeypatch.setattr("embaudit_flows.plan.choose_device", lambda device: "cuda:0")
    plan = plan_audit(AuditRequest(checkpoint=str(folder), dtype=asked))
    assert (plan.spec.device, plan.spec.dtype) == ("cuda:0", planned)
    # Every measure's tasks load what the plan says, here on the CPU that there is.
    spec = plan.spec.model_copy(update={"device": "cpu"})
    assert str(encoder_of(spec).checkpoint.model.dtype) == f"torch.{planned}"


@pytest.mark.parametrize(("changed", "is_same"), [("geometry", True), ("socm", False)])
def test_settings_of_a_measure_that_is_left_out_ask_nothing(
    home: Path, tiny_checkpoint: Path, tmp_path: Path, changed: str, is_same: bool
) -> None:
    """Such as those of a measure that came with a later embaudit."""
    ids, keys = set(), set()
    for texts in (20, 30):
        profile = tmp_path / f"{texts}.toml"
        profile.write_text(f'name = "own"\nversion = 1\ndescription = "{texts}"\n[{changed}]\ntexts = {texts}\n')
        request = AuditRequest(checkpoint=str(tiny_checkpoint), profile=str(profile), measures=["socm"], device="cpu")
        ids.add(plan_audit(request).audit_id({}))
        settings = load_profile(str(profile)).asked_of(request.chosen_measures)
        keys.add(request.key)
        assert set(settings) == {"name", "version", "socm"}
    assert (len(ids) == 1) is (len(keys) == 1) is is_same


def test_a_prompt_by_its_name_is_the_audit_of_its_text_and_no_prompt_that_of_a_checkpoint_without(
    home: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_checkpoint, tmp_path / "prompted"))
    declared = {"prompts": {"query": "query: ", "sts": "sts: "}, "default_prompt_name": "sts"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(declared))

    def id_of(checkpoint: Path, **asked: str) -> str:
        return plan_audit(AuditRequest(checkpoint=str(checkpoint), device="cpu", **asked)).audit_id({})

    bare = id_of(tiny_checkpoint)
    assert id_of(folder, prompt="") == bare
    assert id_of(folder, prompt="query") == id_of(tiny_checkpoint, prompt="query: ")
    assert len({bare, id_of(folder), id_of(folder, prompt="query"), id_of(folder, query_prompt="")}) == 4
    with pytest.raises(UsageError, match=r"--query-prompt: .* declares none"):
        id_of(tiny_checkpoint, query_prompt="query")


def test_tasks_load_the_prompts_that_were_planned_with(home: Path, tiny_checkpoint: Path) -> None:
    asked = {"prompt": "a: ", "query_prompt": "q: ", "document_prompt": ""}
    spec = plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), device="cpu", **asked)).spec
    applied = {kind: encoder_of(spec, kind).checkpoint.prompt.text for kind in ("text", "query", "document")}
    assert applied == {"text": "a: ", "query": "q: ", "document": ""}


def test_another_commit_of_the_same_content_is_another_row(hub: FakeHub, tiny_checkpoint: Path, home: Path) -> None:
    hub.repositories["team/tiny"] = tiny_checkpoint
    ids, revisions = set(), []
    for commit in (COMMIT, "f" * 40):
        hub.commits["team/tiny"] = commit
        plan = plan_audit(AuditRequest(checkpoint="team/tiny", device="cpu"))
        (row,) = read_rows([checkpoint_row(plan).path])
        ids.add(row["checkpoint_id"])
        revisions.append(row["revision"])
    assert len(ids) == 1
    assert revisions == [COMMIT, "f" * 40]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"measures": ["stick"]}, "no measure is called 'stick'"),
        ({"pairs": {"training": "pairs.csv"}}, "Pairs are for scoring or validation, not for 'training'"),
        ({"limit_tokens": 300}, r"limit_tokens is a setting of the measure sticky: --set sticky\.limit_tokens=VALUE"),
        ({"exhaustive": True}, r"measure_settings\.sticky\.exhaustive"),
        ({"dtype": "int8"}, "dtype: .*'int8'"),
        ({"seed": -1}, "seed: .* greater than or equal to 0, not -1"),
        ({"colour": "red"}, "unknown key colour"),
        ({"corpora": {"sts": "https://me:secret@example.com/a.csv"}}, "password"),
    ],
)
def test_what_does_not_fit_is_named(asked: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        AuditRequest.of(checkpoint="packaged:all-MiniLM-L6-v2", **asked)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("sticky", "words"),
    [({"scan_dtype": "int8"}, "scan_dtype: .*'int8'"), ({"limit_tokens": 0}, "limit_tokens: .* equal to 1, not 0")],
)
def test_settings_of_a_measure_that_do_not_fit_are_named(sticky: dict[str, object], words: str) -> None:
    request = AuditRequest.of(checkpoint="packaged:all-MiniLM-L6-v2", measure_settings={"sticky": sticky})
    with pytest.raises(UsageError, match=f"The settings of sticky are invalid: {words}"):
        plan_audit(request)


def test_a_source_is_kept_as_far_as_the_measures_draw_from_it(
    home: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    def kept(corpus: str, measures: list[str], profile: str = "", **asked: Any) -> Draw | None:
        file = tmp_path / "own.toml"
        file.write_text(f'name = "own"\nversion = 1\ndescription = ""\n{profile}')
        request = AuditRequest(
            checkpoint=str(tiny_checkpoint), profile=str(file), device="cpu", measures=measures, seed=5, **asked
        )
        return plan_audit(request).kept_of(corpus)

    both = ["socm", "layers"]
    assert kept("wikipedia", both) == Draw(rows=KEPT_ROWS, seed=5)
    assert kept("wikipedia", both, "[layers]\ntexts = 30_000") == Draw(rows=30_000, seed=5)
    assert kept("wikipedia", both, draw="first") == Draw(rows=KEPT_ROWS)
    assert kept("wikipedia", both, '[layers]\ndraw = "first"') is None
    # Pairs for sticky tokens and scored pairs are chosen among all, labelled texts are not.
    assert kept("sts", ["sticky"]) is None
    assert kept("sts", ["tempscale"]) is None
    assert kept("longdocs", ["length", "tempscale"]) == kept("longdocs", ["length"]) == Draw(rows=KEPT_ROWS, seed=5)
    negatives = {"msmarco-hard-negatives": "sample"}
    assert kept("msmarco-hard-negatives", ["socm"], corpora=negatives) == Draw(rows=50_000, seed=5)


def test_settings_of_measures_from_the_command_line() -> None:
    given = ["sticky.exhaustive=true", "sticky.scan_dtype=float32", "length.texts=20", 'impact.tokens=["river"]']
    assert parse_measure_settings(given) == {
        "sticky": {"exhaustive": True, "scan_dtype": "float32"},
        "length": {"texts": 20},
        "impact": {"tokens": ["river"]},
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["exhaustive=true"], r"--set exhaustive=true is not MEASURE\.NAME=VALUE"),
        (["sticky.exhaustive"], r"is not MEASURE\.NAME=VALUE"),
        (["sticky.copies=8", "sticky.copies=9"], r"--set sticky\.copies is given twice"),
    ],
)
def test_settings_of_another_form_are_named(given: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_measure_settings(given)
