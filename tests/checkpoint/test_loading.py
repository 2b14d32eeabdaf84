"""What loading does beside loading: share, stay quiet, choose a precision, import little."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from tiny_models import TEXTS, D, change_json, load, save_model, save_tokenizer

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.load import choose_device, choose_dtype
from embaudit.checkpoint.model import _refuse_unread_positions
from embaudit.words.errors import CheckpointError


def test_two_loads_share_the_model(bert: Path) -> None:
    first, second = load(bert), load(bert)
    assert first.model is second.model
    # Overrides change what is done with the hidden states, and not the model.
    assert load(bert, pooling="cls", max_length=10).model is first.model
    assert load(bert, dtype="bfloat16").model is not first.model


def test_threads_that_load_at_once_share_the_model(bert: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        loaded = list(threads.map(load, [bert] * 8))
    assert len({id(checkpoint.model) for checkpoint in loaded}) == 1
    vectors = [Encoder(checkpoint).encode_texts(TEXTS) for checkpoint in loaded]
    assert all((other == vectors[0]).all() for other in vectors)


def test_loading_prints_nothing(bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    capfd.readouterr()
    Encoder(load(bert)).encode_texts([*TEXTS, "gold " * 600])
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_failed_load_prints_nothing_either(bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from embaudit.words.errors import CheckpointError

    change_json(bert / "config.json", num_hidden_layers=3, hidden_size=64)
    capfd.readouterr()
    with pytest.raises(CheckpointError):
        load(bert)
    assert capfd.readouterr() == ("", "")


def test_half_precision_gives_nearly_the_same_float32_vectors(bert: Path) -> None:
    exact = Encoder(load(bert)).encode_texts(TEXTS)
    checkpoint = load(bert, dtype="bfloat16")
    rounded = Encoder(checkpoint).encode_texts(TEXTS)
    assert checkpoint.dtype == "bfloat16"
    assert rounded.dtype == np.float32
    assert 1e-6 < np.abs(rounded - exact).max() < 0.1
    assert checkpoint.checkpoint_id == load(bert).checkpoint_id


def test_auto_is_float32_whatever_was_saved(bert: Path) -> None:
    change_json(bert / "config.json", dtype="bfloat16")
    assert load(bert).dtype == choose_dtype("auto") == choose_dtype("float32") == "float32"
    assert choose_dtype("bfloat16") == "bfloat16"


def test_auto_takes_an_accelerator_where_there_is_one() -> None:
    import torch

    expected = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    assert choose_device("auto") == expected
    assert choose_device("cpu") == "cpu"


def test_the_device_and_the_machine_are_known_without_importing_torch() -> None:
    """An audit whose results are staged asks nothing else of torch."""
    if not version("torch").endswith("+cpu"):
        pytest.skip("needs a CPU build of torch")
    script = (
        "import sys; from embaudit.checkpoint import load, precision;"
        "print(load.choose_device('auto'), precision.machine('cpu')['torch'], 'torch' in sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert said == ["cpu", version("torch"), "False"]


def test_an_accelerator_gives_the_same_vectors(bert: Path) -> None:
    if choose_device("auto") == "cpu":
        pytest.skip("needs a GPU")
    # TF32 is off by default; float32 sums in another order.
    gpu = Encoder(load_checkpoint(str(bert), LoadOptions(dtype="float32"))).encode_texts(TEXTS)
    np.testing.assert_allclose(gpu, Encoder(load(bert)).encode_texts(TEXTS), atol=1e-5)


def test_a_resolved_checkpoint_loads_like_its_name(bert: Path) -> None:
    from embaudit.checkpoint import resolve

    assert load_checkpoint(resolve(str(bert)), LoadOptions(device="cpu")).checkpoint_id == load(bert).checkpoint_id


def test_a_decoder_keeps_no_keys_and_values(family_folder: Callable[[str], Path]) -> None:
    import torch

    model = load(family_folder("qwen2")).model
    with torch.inference_mode():
        assert model(input_ids=torch.tensor([[5, 6, 7]])).past_key_values is None


@pytest.mark.parametrize("family", ["T5", "MT5", "UMT5", "LongT5"])
def test_full_encoder_decoders_are_loaded_as_their_encoder(
    family: str, tmp_path: Path, reference: Callable[..., np.ndarray]
) -> None:
    import transformers

    config = getattr(transformers, f"{family}Config")(
        vocab_size=save_tokenizer(tmp_path, "t5"),
        d_model=D,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    save_model(tmp_path, getattr(transformers, f"{family}Model")(config))
    checkpoint = load(tmp_path)
    assert type(checkpoint.model).__name__ == f"{family}EncoderModel"
    np.testing.assert_allclose(Encoder(checkpoint).encode_texts(TEXTS), reference(tmp_path), atol=1e-5)


def test_weights_of_a_model_with_a_head(bert: Path) -> None:
    """Most backbones are published with a language-model head, whose tensors have a prefix."""
    from transformers import BertForMaskedLM

    expected = Encoder(load(bert)).encode_texts(TEXTS)
    model = BertForMaskedLM.from_pretrained(bert)
    model.save_pretrained(bert)
    np.testing.assert_allclose(Encoder(load(bert)).encode_texts(TEXTS), expected, atol=1e-6)


LIGHT = """
import sys
import embaudit.checkpoint
heavy = {"torch", "transformers"}
early = heavy & set(sys.modules)
assert not early, f"imported before use: {early}"
embaudit.checkpoint.resolve(sys.argv[1])
assert not heavy & set(sys.modules)
"""
ENCODING = """
import sys
import embaudit.checkpoint
checkpoint = embaudit.checkpoint.load_checkpoint(sys.argv[1], embaudit.checkpoint.LoadOptions(device="cpu"))
vectors = embaudit.checkpoint.Encoder(checkpoint).encode_texts(["the river"])
assert vectors.shape == (1, 32)
unwanted = {"prefect", "duckdb", "great_expectations", "sentence_transformers", "datasets", "pandas", "click"}
assert not unwanted & set(sys.modules), unwanted & set(sys.modules)
"""


# Torch and transformers in a process of their own take longer than all that is tested with them.
@pytest.mark.parametrize("script", [LIGHT, pytest.param(ENCODING, marks=pytest.mark.slow)], ids=["finding", "encoding"])
def test_nothing_is_imported_that_is_not_needed(script: str, bert: Path) -> None:
    repository = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, str(bert)], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "Loading weights" not in done.stderr


def test_a_folder_that_moves_after_loading(bert: Path, tmp_path: Path) -> None:
    before = Encoder(load(bert)).encode_texts(TEXTS)
    moved = Path(shutil.move(bert, tmp_path / "moved"))
    assert (Encoder(load(moved)).encode_texts(TEXTS) == before).all()


@pytest.mark.parametrize(
    ("installed", "rotary", "is_refused"),
    [("4.57.1", {"rope_theta": 5e5}, True), ("4.57.1", None, False), ("5.23.0", {"rope_theta": 5e5}, False)],
)
def test_positions_that_transformers_4_would_not_read_are_refused(
    installed: str, rotary: dict[str, float] | None, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    config = transformers.LlamaConfig()
    config.rope_parameters = rotary
    monkeypatch.setattr(transformers, "__version__", installed)
    refused = pytest.raises(
        CheckpointError, match=r"written by transformers 5: transformers 4\.57\.1 does not read its"
    )
    with refused if is_refused else nullcontext():
        _refuse_unread_positions(config, tmp_path)
