"""``embaudit check`` of checkpoints of several sizes, whole and by files alone, start included.

Weights are random, for which a network takes as long as for any others; what is told by them is that they are random.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.measured import Measured
from benchmarks.stored import CHECKPOINT, timed

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3_072}
DECODER = {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "intermediate_size": 4_864}
DECODER |= {"num_key_value_heads": 2, "vocab_size": 151_936, "tie_word_embeddings": True}
GB = 1e9 / 2**30


def run() -> Iterator[Measured]:
    yield _checked("22 M parameters (all-MiniLM-L6-v2)", CHECKPOINT)
    # Made in a process of its own: a child's peak begins with what its parent holds.
    with TemporaryDirectory() as made, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as maker:
        base = maker.submit(_random, Path(made) / "base", "Bert", BERT_BASE, "float32").result()
        yield _checked("110 M, float32, random", base)
        decoder = maker.submit(_random, Path(made) / "decoder", "Qwen2", DECODER, "bfloat16").result()
        yield _checked(".49 B, bfloat16, random", decoder, target="≤ 120 s with AVX512-BF16, ≤ 300 s without; ≤ 2.8 GB")
        yield _checked(".49 B, bfloat16, random", decoder, "--files", target="≤ 25 s, ≤ 1 GB")


def _checked(what: str, checkpoint: str, *options: str, target: str = "") -> Measured:
    said, seconds, peak = timed("check", checkpoint, *options)
    if said["checkpoint_id"] is None:
        raise RuntimeError(said["line"])
    name = " ".join(("embaudit check", *options))
    return Measured(f"`{name}`, {what} (`large`)", f"{seconds:.0f} s, {peak / GB:.2f} GB", target)


def _random(folder: Path, family: str, sizes: dict[str, Any], dtype: str) -> str:
    """A checkpoint as transformers initialises one, with a tokenizer that knows whole words."""
    import torch
    import transformers

    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, dtype))
    transformers.AutoModel.from_config(getattr(transformers, f"{family}Config")(**sizes)).save_pretrained(folder)
    (_of_bytes(sizes["vocab_size"]) if family == "Qwen2" else _packaged()).save_pretrained(folder)
    return str(folder)


def _packaged() -> PreTrainedTokenizerBase:
    import transformers

    from embaudit.checkpoint.reference import resolve

    found: PreTrainedTokenizerBase = transformers.AutoTokenizer.from_pretrained(resolve(CHECKPOINT).folder)
    return found


def _of_bytes(entries: int) -> PreTrainedTokenizerBase:
    """Qwen's kind, which reads no other's file, of the words of the sample; the rest of its entries is never met."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    from embaudit.measures.quality.material import sample_material

    texts = chain.from_iterable(sample_material().texts_by_role().values())
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=20_000, initial_alphabet=alphabet))
    said = json.loads(trained.to_str())["model"]
    vocabulary = {"<|endoftext|>": entries - 1, **said["vocab"]}
    vocabulary |= {f"[{number}]": number for number in range(len(said["vocab"]), entries - 1)}
    return transformers.Qwen2Tokenizer(vocab=vocabulary, merges=[tuple(merge) for merge in said["merges"]])
