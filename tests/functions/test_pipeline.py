"""What sentence-transformers runs and embaudit's own loader does not read: in memory, and as a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_bert

import embaudit
from embaudit.checkpoint import AskedPrompts, LoadOptions
from embaudit.checkpoint.prompts import Prompts
from embaudit.embedders.opened import CallOptions, open_function
from embaudit.embedders.pipeline import PipelineFunction
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with
from embaudit.words.errors import CheckpointError, UsageError

CPU = LoadOptions(device="cpu")


@pytest.mark.parametrize("kind", ["static", "router", "bag of words", "convolution"])
def test_a_folder_gives_what_the_model_in_memory_gives(
    kind: str, pipelines: dict[str, Any], saved_pipelines: dict[str, Path]
) -> None:
    text = ["the old town"]
    of_a_folder, in_memory = (open_function(one[kind], CPU) for one in (saved_pipelines, pipelines))
    assert isinstance(of_a_folder, PipelineFunction)
    assert of_a_folder.name == str(saved_pipelines[kind])
    for role, method in (("query", "encode_query"), ("document", "encode_document")):
        theirs = getattr(pipelines[kind], method)(text)
        for function in (of_a_folder, in_memory):
            assert np.allclose(function.encode(text, role).vectors, theirs, atol=1e-6)  # type: ignore[arg-type]


def test_a_router_without_a_default_gives_texts_a_documents_vector(pipelines: dict[str, Any]) -> None:
    function = open_function(pipelines["router"], CPU)
    assert function.tells_roles_apart
    text, document, query = (function.encode(["the town"], role).vectors for role in ("text", "document", "query"))  # type: ignore[arg-type]
    assert np.array_equal(text, document)
    assert not np.allclose(text, query)


def test_a_model_is_left_in_training_mode(pipelines: dict[str, Any]) -> None:
    model = pipelines["static"]
    model.train()
    open_function(model, CPU).encode(["the town"])
    assert all(module.training for module in model.modules())
    model.eval()


def test_its_vectors_are_checked_and_its_inside_is_not_measured(
    pipelines: dict[str, Any], saved_pipelines: dict[str, Path]
) -> None:
    in_memory, of_a_folder = embaudit.check(pipelines["static"]), embaudit.check(saved_pipelines["static"])
    assert (in_memory.checkpoint, of_a_folder.checkpoint) == ("the model in memory", str(saved_pipelines["static"]))
    for report in (in_memory, of_a_folder):
        assert (report.kind, report.interface) == (
            "pipeline",
            "sentence-transformers: StaticEmbedding + Normalize, 12 dimensions",
        )
        inside = next(finding for finding in report.findings if finding.name == "inside")
        assert inside.level == "not measured"
        assert "weights, layers, states, tokens" in inside.sentence
        assert "StaticEmbedding" in inside.sentence
        assert {"norm", "one_function", "tail"} <= {finding.name for finding in report.findings}


def test_its_identity_is_what_its_folder_holds(saved_pipelines: dict[str, Path], tmp_path: Path) -> None:
    same, changed = (Path(shutil.copytree(saved_pipelines["static"], tmp_path / name)) for name in ("same", "changed"))
    (same / "README.md").write_text("another card")
    (same / ".cache").mkdir()
    (same / ".cache" / "of the hub").write_text("downloaded")
    weights = bytearray((changed / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (changed / "model.safetensors").write_bytes(weights)
    own, of_same, of_changed = (open_function(one, CPU) for one in (saved_pipelines["static"], same, changed))
    assert own.identity == of_same.identity != of_changed.identity
    assert len(own.identity) == 16
    # What was begun with one is not gone on with by the other.
    assert own.asked_as.replace(own.name, "") != of_changed.asked_as.replace(of_changed.name, "")


@pytest.mark.slow
def test_one_that_reads_padding_is_found(saved_pipelines: dict[str, Path]) -> None:
    finding = next(one for one in embaudit.check(saved_pipelines["convolution"]).findings if one.name == "one_function")
    assert finding.level == "problem"
    assert "batch" in finding.sentence


@pytest.mark.slow
def test_a_model_that_the_loader_reads_is_checked_as_a_checkpoint(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    report = embaudit.check(SentenceTransformer(str(tiny_bert(tmp_path / "tiny")), device="cpu"), device="cpu")
    assert (report.kind, report.checkpoint) == ("checkpoint", "the model in memory")
    assert report.checkpoint_id


def edited(folder: Path, target: Path, **changes: Any) -> Path:
    """A copy with other entries in modules.json."""
    shutil.copytree(folder, target)
    file = target / "modules.json"
    modules = json.loads(file.read_text())
    file.write_text(json.dumps([{**modules[0], **changes}, *modules[1:]]))
    return target


def test_what_nobody_asked_for_is_not_run(saved_pipelines: dict[str, Path], tmp_path: Path) -> None:
    custom = edited(saved_pipelines["static"], tmp_path / "custom", type="custom_st.Static")
    (custom / "custom_st.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    routed = tmp_path / "routed"
    shutil.copytree(saved_pipelines["router"], routed)
    settings = json.loads((routed / "router_config.json").read_text())
    settings["types"] = dict.fromkeys(settings["types"], "custom_st.Static")
    (routed / "router_config.json").write_text(json.dumps(settings))
    (routed / "custom_st.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for folder in (custom, routed):
        with pytest.raises(CheckpointError, match="starts with"):
            open_function(folder, CPU)
        assert embaudit.check(folder).verdict == "do not serve"
    assert not (tmp_path / "ran").exists()


def test_pickles_are_refused(saved_pipelines: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(saved_pipelines["static"], folder)
    (folder / "model.safetensors").unlink()
    torch.save({"embedding.weight": torch.zeros(4, 2)}, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="only as a pickle"):
        open_function(folder, CPU)


@pytest.mark.parametrize(
    "kind",
    [
        "sentence_transformers.sparse_encoder.models.MLMTransformer",
        "sentence_transformers.models.SparseStaticEmbedding",
    ],
)
def test_sparse_models_stay_refused(saved_pipelines: dict[str, Path], tmp_path: Path, kind: str) -> None:
    folder = edited(saved_pipelines["static"], tmp_path / "sparse", type=kind)
    with pytest.raises(CheckpointError, match="one dimension per vocabulary entry"):
        open_function(folder, CPU)


def test_what_it_does_not_take_is_refused(saved_pipelines: dict[str, Path]) -> None:
    for options, said in (
        (LoadOptions(pooling="cls"), "pooling cannot be set"),
        (LoadOptions(max_length=8), "max_length cannot be set"),
        (LoadOptions(dtype="bfloat16"), "dtype cannot be set"),
        (LoadOptions(prompts=AskedPrompts("find: ")), "a prompt cannot be set"),
    ):
        with pytest.raises(UsageError, match=said):
            open_function(saved_pipelines["static"], options)
    with pytest.raises(UsageError, match="base cannot be set"):
        embaudit.check(saved_pipelines["static"], base=saved_pipelines["router"])


def test_a_folder_that_nothing_reads_says_so(saved_pipelines: dict[str, Path], tmp_path: Path) -> None:
    folder = edited(saved_pipelines["static"], tmp_path / "broken")
    (folder / "tokenizer.json").write_text("{")
    report = embaudit.check(folder)
    assert report.verdict == "do not serve"
    assert "sentence-transformers does not read it either" in report.summary.line


def test_a_passport_of_one_that_takes_roles_knows_them(pipelines: dict[str, Any]) -> None:
    """It has no prompts: its queries are its texts, and another's may not be."""
    passport = make_passport(open_function(pipelines["static"], CPU))
    prompted = open_function(pipelines["static"], CPU, CallOptions(prompts=Prompts(query="river ")))
    assert verify_with(passport, prompted).differing == ("as queries",)
    assert verify_with(passport, open_function(pipelines["static"], CPU)).line == "The same function."
