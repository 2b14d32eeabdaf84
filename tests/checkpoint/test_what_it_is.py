"""A folder that is no checkpoint is named for what it is, with the line that makes it one, and the line works."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commands import run_here
from tiny_models import load, write_json

from embaudit.checkpoint import Encoder, LoadOptions, resolve
from embaudit.checkpoint.layouts import FILES, OTHER_NAMES, STATES, WITH_WEIGHTS, WITHOUT_WEIGHTS
from embaudit.checkpoint.load import describe
from embaudit.checkpoint.reference import CheckpointRef
from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.checkpoint.what_it_is import refuse_other_repository
from embaudit.words.errors import CheckpointError

TEXTS = ["the river", "gold and iron", "a longer text about rivers and iron"]
# Files of a folder, what it is called, and what is to be typed. A name's content is of no matter, but for scripts.
TABLE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "torch": ((".metadata", "__0_0.distcp", "__1_0.distcp"), "distributed checkpoint of PyTorch", "dcp_to_torch"),
    "torch in a folder": (("model/.metadata", "model/__0_0.distcp"), "in it (model)", "dcp_to_torch FOLDER/model OUT"),
    "torch, cut short": (("__0_0.distcp",), "without its .metadata", "hidden files"),
    "lightning, sharded": ((".metadata", "__0_0.distcp", "meta.pt"), "of Lightning", "consolidate_checkpoint FOLDER"),
    "megatron core": (("common.pt", ".metadata", "__0_0.distcp"), "Megatron Core", "export_ckpt('FOLDER', 'OUT')"),
    "fsdp": (
        ("pytorch_model_fsdp_0/.metadata", "optimizer_0/.metadata"),
        "FSDP",
        "accelerate merge-weights FOLDER/pytorch_model_fsdp_0 OUT",
    ),
    "deepspeed": (
        ("zero_to_fp32.py", "latest", "global_step500/zero_pp_rank_0_mp_rank_00_optim_states.pt", "config.json"),
        "a DeepSpeed checkpoint",
        "python FOLDER/zero_to_fp32.py FOLDER OUT",
    ),
    "deepspeed, no script": (
        ("global_step500/mp_rank_00_model_states.pt", "latest"),
        "a DeepSpeed checkpoint",
        "zero_to_fp32 FOLDER OUT",
    ),
    "a step of deepspeed": (("bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",), "one step of a DeepSpeed", "--tag"),
    "megatron": (("mp_rank_00/model_optim_rng.pt",), "checkpoint of Megatron", "Megatron Bridge"),
    "a run of megatron": (
        ("latest_checkpointed_iteration.txt", "iter_0000500/mp_rank_00_000/model_optim_rng.pt"),
        "checkpoint of Megatron",
        "Megatron Bridge",
    ),
    "megatron without a step": (("latest_checkpointed_iteration.txt",), "without an iteration", "iter_"),
    "nemo 2": (
        ("context/model.yaml", "weights/__0_0.distcp", "weights/.metadata"),
        "PyTorch in it (weights)|NeMo 2",
        "OUT",
    ),
    "nemo 2, zarr": (("context/model.yaml", "weights/common.pt"), "NeMo 2", "llm.export_ckpt"),
    "orbax": (("_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt", "d/abc"), "Orbax", "PyTreeCheckpointer"),
    "orbax, a step": (("default/_METADATA", "default/manifest.ocdbt"), "Orbax", "PyTreeCheckpointer"),
    "orbax, a run": (("500/default/_METADATA", "500/_CHECKPOINT_METADATA"), "Orbax", "PyTreeCheckpointer"),
    "t5x": (("target.encoder/.zarray", "checkpoint"), "Zarr", "Export"),
    "a download": (("config.json", "model.safetensors.incomplete"), "cut short", "Download it again"),
    "shards without index": (("config.json", "model-00001-of-00002.safetensors"), "without their index", "load_file"),
    "old shards": (("pytorch_model-00001-of-00002.bin",), "without their index", "pytorch_model.bin.index.json"),
    "adapter alone": (("adapter_model.safetensors",), "without its adapter_config.json", "merge"),
    "original layout": (
        ("consolidated.00.pth", "params.json", "tokenizer.model"),
        "original layout",
        "for transformers",
    ),
    "diffusers": (("model_index.json", "unet/config.json"), "diffusers", "text_encoder"),
    "a data set": (("dataset_info.json", "data-00000-of-00001.arrow"), "data set", "--corpus"),
    "accelerate": (
        ("model.safetensors", "optimizer.bin", "random_states_0.pkl"),
        "state of accelerate",
        "cp FOLDER/model.safetensors OUT",
    ),
    "trainer, no config": (
        ("model.safetensors", "trainer_state.json"),
        "training state",
        "cp FOLDER/model.safetensors OUT",
    ),
    "gguf": (("model-q4_k_m.gguf",), "llama.cpp", "converted from"),
    "onnx": (("config.json", "tokenizer.json", "onnx/model.onnx"), "ONNX export (onnx/model.onnx)", "exported from"),
    "openvino": (("openvino_model.xml", "openvino_model.bin"), "OpenVINO", "exported from"),
    "tflite": (("model.tflite",), "for a runtime", "exported from"),
    "tensorflow": (("config.json", "tf_model.h5"), "TensorFlow weights", "from_tf=True"),
    "flax": (("config.json", "flax_model.msgpack"), "Flax weights", "from_flax=True"),
    "saved model": (("saved_model.pb", "variables/variables.index"), "SavedModel", "exported from"),
    "tensorflow 1": (
        ("model.ckpt.index", "model.ckpt.data-00000-of-00001", "bert_config.json"),
        "of TensorFlow",
        "--tf_checkpoint_path FOLDER/model.ckpt ",
    ),
    "keras": (("model.keras",), "Keras", "exported from"),
    "paddle": (("model_state.pdparams",), "PaddlePaddle", "PyTorch"),
    "msgpack": (("params.msgpack",), "weights of Flax", "trained"),
    "mlx": (("weights.npz", "config.json"), "MLX or NumPy", "safetensors.numpy"),
    "nemo": (("model.nemo",), "NeMo", "tarfile -e FOLDER/model.nemo"),
    "torchscript": (("model.pt",), "TorchScript", "torch.jit.load('FOLDER/model.pt')"),
    "lightning": (("checkpoints/epoch=0-step=3.ckpt", "hparams.yaml"), "of Lightning", "['state_dict']"),
    "fsdp in one file": (("pytorch_model_fsdp.bin",), "FSDP state", "cp FOLDER/pytorch_model_fsdp.bin OUT"),
    "zip": (("model.zip",), "an archive (model.zip)", "python -m zipfile -e FOLDER/model.zip"),
    "tar": (("model.tar.gz",), "an archive (model.tar.gz)", "python -m tarfile -e FOLDER/model.tar.gz"),
    "zstd": (("model.tar.zst",), "an archive (model.tar.zst)", "--zstd"),
    "an optimizer": (
        ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"),
        "without the model's weights",
        "save_model",
    ),
    "an optimizer of a config": (
        ("config.json", "tokenizer.json", "optimizer.pt"),
        "without the model's weights",
        "save_model",
    ),
    "another name": (
        ("config.json", "weights.safetensors"),
        "under another name",
        "cp FOLDER/weights.safetensors FOLDER/model.safetensors",
    ),
    "a state dict": (("config.json", "best.pt", "optimizer.pt"), "under another name (best.pt)", "--allow-pickle"),
}


def made(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    if names == ("model.pt",):
        scripted(folder / "model.pt")
    return folder


def scripted(path: Path) -> None:
    import torch

    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))


def refusal(folder: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        describe(resolve(str(folder)), LoadOptions())
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", TABLE)
def test_a_folder_is_named_for_what_it_is(name: str, tmp_path: Path) -> None:
    files, what, typed = TABLE[name]
    folder = made(tmp_path / "run", files)
    error = refusal(folder)
    assert any(one in error.happened for one in what.split("|")), error.happened
    plain = error.next_step.replace(str(folder), "FOLDER")
    assert typed in plain, plain
    # Not for the first thing that it happens to lack.
    assert not re.search(r"has no (tokenizer|config\.json|weights)", error.happened)


def test_every_row_of_the_table_is_tried() -> None:
    rows = [*WITH_WEIGHTS, *STATES, *FILES, *WITHOUT_WEIGHTS, *OTHER_NAMES]
    from embaudit.checkpoint.what_it_is import _matches

    for row in rows:
        tried = [
            name
            for name, (files, _, _) in TABLE.items()
            if all(any(_matches(file, pattern) for file in files) for pattern in row.files)
        ]
        assert tried, row.what


@pytest.fixture
def out(bert: Path, tmp_path: Path) -> Path:
    """The folder that training began with, without its weights."""
    copy = Path(shutil.copytree(bert, tmp_path / "out"))
    (copy / "model.safetensors").unlink()
    return copy


def tensors(folder: Path) -> dict[str, object]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


def line_of(error: CheckpointError, out: Path) -> str:
    found = re.search(r"((?:python -[mc]|cp) .*?)(?: \(OUT is|, then:|$)", error.next_step)
    assert found, error.next_step
    return re.sub(r"\bOUT\b|\bUNPACKED\b", str(out), found[1])


def run_line(error: CheckpointError, out: Path) -> None:
    """Do what the error says to type, in this process: a new one would import torch for seconds."""
    program, *arguments = shlex.split(line_of(error, out))
    if program == "cp":
        subprocess.run([program, *arguments], check=True)
    elif arguments[0] == "-c":
        exec(compile(arguments[1], "<line>", "exec"), {})
    else:
        with mock.patch.object(sys, "argv", arguments[1:]):
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


def distributed(bert: Path, folder: Path) -> None:
    import torch.distributed.checkpoint as dcp

    dcp.save(tensors(bert), storage_writer=dcp.FileSystemWriter(folder))


def as_numpy(bert: Path, folder: Path) -> None:
    from safetensors.numpy import load_file

    np.savez(folder / "weights.npz", **load_file(bert / "model.safetensors"))


def as_shards(bert: Path, folder: Path) -> None:
    from safetensors.torch import save_file

    whole = list(tensors(bert).items())
    for place, part in enumerate((whole[:5], whole[5:]), start=1):
        save_file(dict(part), folder / f"model-0000{place}-of-00002.safetensors")  # type: ignore[arg-type]


def as_lightning(bert: Path, folder: Path) -> None:
    import torch

    state = {f"encoder.{name}": tensor for name, tensor in tensors(bert).items()}
    torch.save({"state_dict": state, "pytorch-lightning_version": "2.5.0", "epoch": 1}, folder / "last.ckpt")


def as_accelerate(bert: Path, folder: Path) -> None:
    shutil.copy(bert / "model.safetensors", folder)
    (folder / "optimizer.bin").write_bytes(b"")


def as_one_file_of_fsdp(bert: Path, folder: Path) -> None:
    import torch

    torch.save(tensors(bert), folder / "pytorch_model_fsdp.bin")


@pytest.mark.parametrize(
    "leave",
    [distributed, as_numpy, as_lightning, as_accelerate, as_one_file_of_fsdp],
    ids=lambda leave: leave.__name__,
)
def test_the_line_makes_the_same_checkpoint_of_it(
    leave: Callable[[Path, Path], None], bert: Path, out: Path, tmp_path: Path
) -> None:
    expected = Encoder(load(bert)).encode_texts(TEXTS)
    folder = tmp_path / "a run"
    folder.mkdir()
    leave(bert, folder)
    run_line(refusal(folder), out)
    assert (Encoder(load(out, allow_pickle=True)).encode_texts(TEXTS) == expected).all()


@pytest.mark.slow
def test_the_line_works_in_a_shell(bert: Path, out: Path, tmp_path: Path) -> None:
    expected = Encoder(load(bert)).encode_texts(TEXTS)
    distributed(bert, tmp_path / "a run")
    line = line_of(refusal(tmp_path / "a run"), out).replace("python", sys.executable, 1)
    subprocess.run(line, shell=True, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (Encoder(load(out, allow_pickle=True)).encode_texts(TEXTS) == expected).all()


def test_shards_are_put_together_where_they_are(bert: Path) -> None:
    expected = Encoder(load(bert)).encode_texts(TEXTS)
    as_shards(bert, bert)
    (bert / "model.safetensors").unlink()
    run_line(refusal(bert), bert)
    assert (Encoder(load(bert)).encode_texts(TEXTS) == expected).all()


@pytest.mark.filterwarnings("ignore")
def test_weights_are_taken_out_of_a_script(tmp_path: Path) -> None:
    import torch

    folder, out = tmp_path / "scripted", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    scripted(folder / "model.pt")
    run_line(refusal(folder), out)
    assert set(torch.load(out / "pytorch_model.bin")) == {"weight", "bias"}


@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_an_archive_is_unpacked(suffix: str, bert: Path, tmp_path: Path) -> None:
    file, unpacked = tmp_path / f"my model.{suffix}", tmp_path / "unpacked"
    if suffix == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            for path in bert.rglob("*"):
                archive.write(path, path.relative_to(bert))
    else:
        with tarfile.open(file, "w:gz") as archive:
            archive.add(bert, ".")
    with pytest.raises(CheckpointError, match="it is an archive") as caught:
        CheckpointRef.parse(str(file))
    run_line(caught.value, unpacked)
    assert load(unpacked).checkpoint_id == load(bert).checkpoint_id


def moved_into(bert: Path, folder: Path) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(bert, folder))


def test_a_run_is_answered_with_its_newest_step(bert: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for step in (500, 1_000, 90):
        moved_into(bert, run / f"checkpoint-{step}")
    (run / "trainer_state.json").write_text("{}")
    error = refusal(run)
    assert "with 3 checkpoints in it" in error.happened
    assert error.next_step == f"The newest is {run}/checkpoint-1000: embaudit check {run}/checkpoint-1000"
    # One folder further up, too.
    assert (
        f"embaudit check {run}/checkpoint-1000" in refusal(tmp_path).next_step or "bert" in refusal(tmp_path).next_step
    )
    assert load(run / "checkpoint-1000").checkpoint_id == load(bert).checkpoint_id


def test_a_run_whose_newest_step_is_in_pieces(bert: Path, tmp_path: Path) -> None:
    step = tmp_path / "run" / "checkpoint-500"
    step.mkdir(parents=True)
    distributed(bert, step / "pytorch_model_fsdp_0")
    error = refusal(tmp_path / "run")
    assert f"accelerate merge-weights {step}/pytorch_model_fsdp_0 OUT" in error.next_step


def test_a_run_that_has_its_final_model_is_a_checkpoint(bert: Path) -> None:
    moved_into(bert, bert.parent / "copy")
    shutil.move(bert.parent / "copy", bert / "checkpoint-500")
    for name in ("optimizer.pt", "trainer_state.json", "latest", "zero_to_fp32.py"):
        (bert / name).write_text("")
    assert load(bert)


def test_a_folder_of_the_hubs_cache(bert: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--owner--name"
    for commit in ("aaa111", "bbb222"):
        moved_into(bert, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("aaa111")
    wanted = f"Use that: embaudit check {repository}/snapshots/aaa111"
    assert refusal(repository).next_step == wanted == refusal(repository / "snapshots").next_step
    shutil.rmtree(repository / "snapshots")
    moved_into(tmp_path / "bert" / "1_Pooling", repository / "snapshots" / "aaa111")
    assert refusal(repository).next_step.endswith("embaudit check owner/name")


def test_modules_without_their_list(bert: Path, tmp_path: Path) -> None:
    moved_into(bert, tmp_path / "st" / "0_Transformer")
    error = refusal(tmp_path / "st")
    assert "without its modules.json" in error.happened
    assert f"embaudit check {tmp_path}/st/0_Transformer --pooling" in error.next_step


def test_weights_that_mlx_has_packed(bert: Path) -> None:
    import json

    config = json.loads((bert / "config.json").read_text())
    write_json(bert / "config.json", {**config, "quantization": {"group_size": 64, "bits": 4}})
    error = refusal(bert)
    assert "packed into 4 bits" in error.happened
    assert f"mlx_lm.convert --hf-path {bert} --mlx-path OUT -d" in error.next_step


@pytest.mark.parametrize(
    ("name", "what", "typed"),
    [
        ("model.safetensors", "is a file", "OUT/model.safetensors"),
        ("best.pt", "is a file", "OUT/pytorch_model.bin"),
        ("model.gguf", "it is quantised weights for llama.cpp", "converted from"),
        ("model.onnx", "it is an ONNX export", "exported from"),
        ("last.ckpt", "it is a checkpoint of Lightning", "state_dict"),
        ("model.nemo", "it is an archive of NeMo", "tarfile"),
        ("weights.npz", "it is arrays of MLX", "safetensors.numpy"),
        ("notes.txt", "is a file", "Try its folder"),
    ],
)
def test_a_file_in_place_of_a_folder(name: str, what: str, typed: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(CheckpointError) as caught:
        CheckpointRef.parse(str(tmp_path / name))
    assert what in caught.value.happened
    assert typed in caught.value.next_step


def test_a_clone_without_its_large_files(bert: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for name in ("model.safetensors", "tokenizer.json"):
        (bert / name).write_text(pointer)
    error = refusal(bert)
    assert "git-lfs pointer" in error.happened
    assert "git lfs pull" in error.next_step


def test_a_repository_is_named_before_it_is_downloaded() -> None:
    for files, what, typed in (
        (["README.md", "onnx/model.onnx", "config.json"], "owner/name is an ONNX export", "exported from"),
        (["checkpoint-9/config.json", "checkpoint-9/model.safetensors"], "a checkpoint in it", "FOLDER/checkpoint-9"),
        ([".metadata", "__0_0.distcp", "config.json"], "distributed checkpoint", "dcp_to_torch FOLDER OUT"),
    ):
        with pytest.raises(CheckpointError) as caught:
            refuse_other_repository("owner/name", "owner/name", files)
        assert what in caught.value.happened
        assert "hf download owner/name --local-dir FOLDER" in caught.value.next_step
        assert typed in caught.value.next_step
    # Static and other models without a config have their own message.
    refuse_other_repository(
        "owner/name", "owner/name", ["modules.json", "0_StaticEmbedding/model.safetensors", "a.onnx"]
    )
    refuse_other_repository("owner/name", "owner/name", ["adapter_config.json", "adapter_model.safetensors"])


def test_a_tokenizer_alone_needs_no_weights(bert: Path, tmp_path: Path) -> None:
    (bert / "model.safetensors").unlink()
    (bert / "__0_0.distcp").write_text("")
    assert load_tokenizer_alone(str(bert)).around == 2
    with pytest.raises(CheckpointError, match="archive"):
        load_tokenizer_alone(str(made(tmp_path / "packed", ("model.zip",))))


@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("audit",),
        ("parity", "--with", "run"),
        ("vectors", "vectors.npy"),
        ("passport",),
    ],
    ids=["check", "audit", "parity", "vectors", "passport"],
)
def test_every_command_says_so(command: tuple[str, ...], tmp_path: Path) -> None:
    folder = made(tmp_path / "run", (".metadata", "__0_0.distcp"))
    np.save(tmp_path / "vectors.npy", np.eye(8, dtype=np.float32))
    name, *rest = (str(tmp_path / word) if word == "vectors.npy" else word for word in command)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "EMBAUDIT_HOME": str(tmp_path / "home")}
    told = run_here((name, str(folder), *rest), environment, tmp_path)
    assert told.returncode != 0
    assert "distributed checkpoint of PyTorch" in re.sub(r"\s+", " ", told.stdout + told.stderr)
