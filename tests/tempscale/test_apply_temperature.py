"""Scaled checkpoints on disk: what is written, what stays, what is refused."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as t
from checkpoint_folders import save, save_tiny, tensors_of
from click.testing import CliRunner, Result
from safetensors import SafetensorError
from some_rows import mostly_slow
from tiny_families import TINY, build, representatives_first

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.cli.main import cli
from embaudit.remedies.temperature import Temperatures, temperature
from embaudit.remedies.temperature.apply import ApplyResult, Place, find_places
from embaudit.remedies.temperature.apply import apply_temperature as write
from embaudit.words.errors import CheckpointError, EmbauditError, MeasureError, NotMeasurable, StorageError, UsageError

SUPPORTED = [name for name in TINY if name != "gemma2"]
TEXTS = ["the river is long", "a town in the north", "stone"]


def apply(source: Path, out: Path, tau: Any = 0.8, **options: Any) -> ApplyResult:
    return write(str(source), Temperatures.of(tau), out, device="cpu", **options)


def vectors(folder: Path | Checkpoint, dtype: str = "float32", **options: Any) -> np.ndarray:
    checkpoint = folder if isinstance(folder, Checkpoint) else load(folder, dtype, **options)
    return Encoder(checkpoint).encode_texts(TEXTS)


def load(folder: Path, dtype: str = "float32", **options: Any) -> Checkpoint:
    return load_checkpoint(str(folder), LoadOptions(device="cpu", dtype=dtype, **options))


def vectors_under(folder: Path, tau: Any, dtype: str = "float32", allow_pickle: bool = False, **options: Any) -> Any:
    source = load(folder, dtype, allow_pickle=allow_pickle)
    with temperature(source, tau, **options):
        return vectors(source)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ── what is written ──


# Other layouts of W_q, and shared layers, are those of the next test or have a name here.
@representatives_first(SUPPORTED, also=["albert, groups", "mpnet", "modernbert", "qwen3"])
def test_what_is_written_gives_the_vectors_of_the_context_manager_and_differs_in_named_tensors_only(
    name: str, tmp_path: Path
) -> None:
    source = save_tiny(tmp_path / "source", name)
    made = apply(source, tmp_path / "out")
    assert made.difference <= 1e-5
    checkpoint, found = load(source), vectors(tmp_path / "out")
    assert np.abs(found - vectors(checkpoint)).max() > 1e-4
    with temperature(checkpoint, 0.8):
        np.testing.assert_allclose(found, vectors(checkpoint), atol=1e-5)

    before, after = tensors_of(source), tensors_of(tmp_path / "out")
    assert {key for key in before if not torch.equal(before[key], after[key])} == set(made.divided)
    assert len(before) == len(made.divided) + made.others
    old = bytearray((source / "model.safetensors").read_bytes())
    new = bytearray((tmp_path / "out" / "model.safetensors").read_bytes())
    for stored in stored_tensors([source / "model.safetensors"]).values():
        if stored.name in made.divided:
            data = slice(stored.start, stored.start + 4 * int(np.prod(stored.shape)))
            old[data] = new[data] = bytes(data.stop - data.start)
    assert old == new


@pytest.mark.parametrize(
    ("saved_as", "stored"),
    mostly_slow(
        [
            (lambda: t.BertForMaskedLM(build("bert").config), "bert.encoder.layer.0.attention.self.query.weight"),
            (lambda: t.T5Model(build("t5").config), "encoder.block.0.layer.0.SelfAttention.q.weight"),
            (lambda: t.Qwen3ForCausalLM(build("qwen3").config), "model.layers.0.self_attn.q_norm.weight"),
            (lambda: t.GPT2LMHeadModel(build("gpt2").config), "transformer.h.0.attn.c_attn.weight"),
            (lambda: build("nomic_bert"), "encoder.layers.0.attn.Wqkv.weight"),
            (lambda: build("gte"), "encoder.layer.0.attention.qkv_proj.bias"),
            (lambda: build("jina_embeddings_v3"), "encoder.layers.1.mixer.Wqkv.weight"),
        ],
        3,
    ),
)
def test_names_and_layouts_are_those_of_the_source(saved_as: Any, stored: str, tmp_path: Path) -> None:
    torch.manual_seed(5)
    model = saved_as().eval()
    # Fresh models have neutral gains and biases, the same in every layer: names must tell them apart.
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter) if parameter.dim() > 1 else 0)
    source = save(tmp_path / "source", model)
    assert stored in tensors_of(source)
    made = apply(source, tmp_path / "out")
    assert stored in made.divided
    assert tensors_of(tmp_path / "out").keys() == tensors_of(source).keys()
    np.testing.assert_allclose(vectors(tmp_path / "out"), vectors_under(source, 0.8), atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_dtype_is_kept(dtype: str, tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "gemma3_text", getattr(torch, dtype))
    made = apply(source, tmp_path / "out", 0.7)
    assert made.dtype == dtype
    assert {tensor.dtype for tensor in tensors_of(tmp_path / "out").values()} == {getattr(torch, dtype)}
    np.testing.assert_array_equal(vectors(tmp_path / "out", dtype), vectors_under(source, 0.7, dtype))


def test_mixed_dtypes_are_kept(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    source = save_tiny(tmp_path / "source", "qwen3", torch.bfloat16)
    mixed = {name: one.float() if "norm" in name else one for name, one in tensors_of(source).items()}
    save_file(mixed, source / "model.safetensors", metadata={"format": "pt"})
    apply(source, tmp_path / "out")
    written = tensors_of(tmp_path / "out")
    assert {name: one.dtype for name, one in written.items()} == {name: one.dtype for name, one in mixed.items()}
    np.testing.assert_allclose(vectors(tmp_path / "out"), vectors_under(source, 0.8), atol=1e-5)


def test_shards_and_their_index_stay(tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "llama", shards=True)
    names = {path.name for path in source.glob("model*")}
    assert len(names) > 3
    apply(source, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").glob("model*")} == names
    index = "model.safetensors.index.json"
    assert (source / index).read_bytes() == (tmp_path / "out" / index).read_bytes()
    np.testing.assert_allclose(vectors(tmp_path / "out"), vectors_under(source, 0.8), atol=1e-5)


@pytest.mark.parametrize("shards", [False, True])
def test_pickles_become_safetensors_where_they_are_allowed(shards: bool, tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "bert", shards=shards, pickle=True)
    with pytest.raises(CheckpointError, match="only as a pickle") as error:
        apply(source, tmp_path / "out")
    assert "--allow-pickle" in error.value.next_step
    assert left_in(tmp_path) == ["source"]
    apply(source, tmp_path / "out", allow_pickle=True)
    assert not list((tmp_path / "out").glob("*.bin*"))
    assert len(list((tmp_path / "out").glob("*.safetensors"))) > (1 if shards else 0)
    expected = vectors_under(source, 0.8, allow_pickle=True)
    np.testing.assert_allclose(vectors(tmp_path / "out"), expected, atol=1e-5)


def test_a_transformer_in_a_folder_of_its_own_stays_there(tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "mpnet", transformer="0_Transformer")
    apply(source, tmp_path / "out", 0.8, divide_position_bias=True)
    assert (tmp_path / "out" / "0_Transformer" / "model.safetensors").is_file()
    expected = vectors_under(source, 0.8, divide_position_bias=True)
    np.testing.assert_allclose(vectors(tmp_path / "out"), expected, atol=1e-5)


def test_links_become_files_and_what_is_not_the_checkpoint_stays_behind(tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "bert")
    (tmp_path / "blobs").mkdir()
    for name in ("model.safetensors", "tokenizer.json", "1_Pooling"):
        shutil.move(source / name, tmp_path / "blobs" / name)
        (source / name).symlink_to(tmp_path / "blobs" / name)
    (source / "loop").symlink_to(source)
    for name in ("onnx/model.onnx", ".cache/a.json", "old/model.safetensors", "tf_model.h5", "pytorch_model.bin"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(b"unscaled")
    (source / "LICENSE").write_text("free")
    apply(source, tmp_path / "out")
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))
    assert {"1_Pooling/config.json", "LICENSE", "README.md", "model.safetensors", "modules.json"} <= files
    assert not any("onnx" in file or "cache" in file or "old" in file or "loop" in file for file in files)
    assert not any(file.endswith((".h5", ".bin")) for file in files)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_model_card_keeps_its_front_and_says_what_was_done(tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "gemma3_text")
    card = "---\nlicense: mit\ntags:\n- embeddings\n---\n\n# Tiny\n\nCafé.\n"
    (source / "README.md").write_text(card, encoding="utf-8")
    made = apply(source, tmp_path / "out", [0.8, 0.9])
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert text.startswith(card)
    for fact in ("τ = 0.8, 0.9 (layer by layer)", str(source), load(source).identity.weights_sha256, "(w + 1)·τ − 1"):
        assert fact in text
    assert all(f"`{name}`" in text for name in made.divided)


def test_a_checkpoint_without_a_card_gets_one(tmp_path: Path) -> None:
    apply(save_tiny(tmp_path / "source", "t5"), tmp_path / "out", divide_position_bias=True)
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert text.startswith("## Attention temperature")
    assert "The position bias was divided, too" in text


def test_one_temperature_after_another_is_their_product(tmp_path: Path) -> None:
    source, first, second = save_tiny(tmp_path / "source", "gemma3_text"), 1.7, 0.6
    apply(source, tmp_path / "once", first)
    apply(tmp_path / "once", tmp_path / "twice", second)
    apply(source, tmp_path / "product", first * second)
    twice, product = tensors_of(tmp_path / "twice"), tensors_of(tmp_path / "product")
    for name in twice:
        torch.testing.assert_close(twice[name], product[name], rtol=1e-6, atol=1e-6)
    text = (tmp_path / "twice" / "README.md").read_text(encoding="utf-8")
    assert text.count("## Attention temperature") == 2


def test_the_source_is_as_it_was(tmp_path: Path) -> None:
    source = save_tiny(tmp_path / "source", "bert")
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    own = vectors(source)
    apply(source, tmp_path / "out")
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    np.testing.assert_array_equal(vectors(source), own)


@pytest.mark.slow
def test_the_packaged_checkpoint_loads_in_sentence_transformers(minilm: Checkpoint, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    with temperature(minilm, 0.8):
        expected = vectors(minilm)
    made = write("packaged:all-MiniLM-L6-v2", Temperatures.of(0.8), tmp_path / "out", device="cpu")
    assert (len(made.divided), made.others) == (12, 92)
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-5)
    assert np.abs(vectors(minilm) - expected).max() > 1e-3


# ── what is refused ──


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "source", "bert")


def test_a_folder_with_something_in_it_is_not_touched(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(UsageError, match="not an empty folder"):
        apply(source, tmp_path / "out")
    with pytest.raises(UsageError, match="not an empty folder"):
        apply(source, tmp_path / "out" / "mine")
    assert left_in(tmp_path / "out") == ["mine"]
    with pytest.raises(UsageError, match="inside the checkpoint"):
        apply(source, source / "out")
    assert left_in(tmp_path) == ["out", "source"]


def test_an_empty_folder_is_filled_and_missing_parents_are_made(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    apply(source, tmp_path / "out")
    apply(source, tmp_path / "a" / "b" / "out")
    assert left_in(tmp_path / "a" / "b") == ["out"]


@pytest.mark.parametrize("tau", [1, [1, 1], [0.8], 0, -1, float("nan")])
def test_bad_temperatures_write_nothing(source: Path, tmp_path: Path, tau: Any) -> None:
    with pytest.raises(UsageError):
        apply(source, tmp_path / "out", tau)
    assert left_in(tmp_path) == ["source"]


def test_families_that_take_no_temperature_write_nothing(tmp_path: Path) -> None:
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    deberta = t.DebertaV2Model(t.DebertaV2Config(**sizes, intermediate_size=24))
    for name, model in (("gemma2", build("gemma2")), ("deberta", deberta)):
        with pytest.raises(NotMeasurable):
            apply(save(tmp_path / name, model), tmp_path / "out")
    assert left_in(tmp_path) == ["deberta", "gemma2"]


def test_an_adapter_on_top_is_refused(source: Path, tmp_path: Path) -> None:
    (source / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="adapter") as error:
        apply(source, tmp_path / "out")
    assert "merge" in error.value.next_step


APPLY = "embaudit.remedies.temperature.apply"
FULL = OSError(errno.ENOSPC, "No space left on device")
# Where it ends, and by what.
ENDS: dict[str, BaseException] = {
    "shutil.copyfile": FULL,
    "embaudit.checkpoint.tensors.StoredTensor.overwrite": FULL,
    f"{APPLY}.add_section": FULL,
    "pathlib.Path.mkdir": FULL,
    "safetensors.torch.save_file": SafetensorError("I/O error: No space left on device (os error 28)"),
    f"{APPLY}.Place.scale": KeyboardInterrupt(),
}


@pytest.mark.parametrize("at", ENDS)
def test_a_full_disk_or_an_interrupt_leaves_nothing(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise ENDS[at]

    source = save_tiny(tmp_path / "source", "bert", pickle="safetensors" in at)
    monkeypatch.setattr(at, fails)
    with pytest.raises((StorageError, KeyboardInterrupt)) as error:
        apply(source, tmp_path / "out", allow_pickle=True)
    if isinstance(error.value, StorageError):
        assert "No space left on device" in str(error.value)
        assert "same command" in error.value.next_step
    assert isinstance(error.value, KeyboardInterrupt) == isinstance(ENDS[at], KeyboardInterrupt)
    assert left_in(tmp_path) == ["source"]


def test_what_does_not_do_what_the_source_does_is_removed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Place, "scale", lambda self: None)
    with pytest.raises(MeasureError, match="does not behave like"):
        apply(source, tmp_path / "out")
    assert left_in(tmp_path) == ["source"]


def test_weights_that_are_nowhere_or_twice_are_an_error(source: Path) -> None:
    from embaudit.checkpoint.anatomy import anatomy_of
    from embaudit.remedies.temperature import plan_scalings

    scalings = plan_scalings(anatomy_of(load(source).model), Temperatures.of(0.5))
    tensors = stored_tensors([source / "model.safetensors"])
    name = "encoder.layer.0.attention.self.query.weight"
    assert len(find_places(scalings, tensors)) == 4
    with pytest.raises(CheckpointError, match="in 2 places"):
        find_places(scalings, {**tensors, f"bert.{name}": tensors[name]})
    bias = name.replace("weight", "bias")
    with pytest.raises(CheckpointError, match=r"query\.bias is in 0 places"):
        find_places(scalings, {key: one for key, one in tensors.items() if key != bias})
    with pytest.raises(CheckpointError, match=r"query\.weight is in 0 places"):
        find_places(scalings, {})


def test_a_broken_header_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        stored_tensors([tmp_path / "model.safetensors"])


# ── the command ──


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["apply-temperature", *arguments], standalone_mode=False)


def test_the_command_says_what_it_did(source: Path, tmp_path: Path) -> None:
    result = run(str(source), "--layer-tau", "0.8, 0.9", "--out", str(tmp_path / "out"), "--device", "cpu")
    assert result.exception is None
    for fact in ("τ = 0.8, 0.9 (layer by layer)", "4 tensors divided", "largest difference 0.0e+00 (float32)", "Next:"):
        assert fact in result.output
    np.testing.assert_allclose(vectors(tmp_path / "out"), vectors_under(source, [0.8, 0.9]), atol=1e-5)
    by_head = run(str(source), "--head-tau", "1,0.9,0.8,0.7", "--out", str(tmp_path / "heads"), "--device", "cpu")
    assert by_head.exception is None
    expected = vectors_under(source, Temperatures.per_head([1, 0.9, 0.8, 0.7]))
    np.testing.assert_allclose(vectors(tmp_path / "heads"), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "exactly one of"),
        (["--tau", "0.8", "--layer-tau", "0.8,0.8"], "exactly one of"),
        (["--head-tau", "0.8,0.8", "--layer-tau", "0.8,0.8"], "exactly one of"),
        (["--head-tau", "0.8"], "1 head,"),
        (["--layer-tau", "0.8,warm"], "not a list of numbers"),
        (["--layer-tau", ""], "not a list of numbers"),
        (["--tau", "0"], "greater than 0"),
        (["--tau", "nan"], "greater than 0"),
        (["--layer-tau", "0.8"], "has 2"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(
    source: Path, tmp_path: Path, arguments: list[str], reason: str
) -> None:
    result = run(str(source), "--out", str(tmp_path / "out"), "--device", "cpu", *arguments)
    assert isinstance(result.exception, EmbauditError)
    assert reason in str(result.exception)
    assert left_in(tmp_path) == ["source"]
