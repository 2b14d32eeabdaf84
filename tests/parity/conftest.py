"""A tiny checkpoint with a prompt, and servers of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tiny import ENGLISH, tiny_bert, wordpiece_vocabulary
from tiny_models import change_json
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.agreement import long_text

if TYPE_CHECKING:
    from tiktoken import Encoding


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, mean pooling and Normalize, and a prompt for queries that is no default."""
    folder = tiny_bert(tmp_path_factory.mktemp("parity") / "tiny")
    change_json(folder / "config_sentence_transformers.json", prompts={"query": "find: ", "document": ""})
    return folder


@pytest.fixture(scope="session")
def served_checkpoint(tiny_folder: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_folder), LoadOptions(device="cpu"))


@pytest.fixture(scope="session")
def spaced_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """The same model with a tokenizer that sees every byte: case, white space and Unicode forms show in its vectors."""
    folder = tiny_bert(tmp_path_factory.mktemp("parity") / "spaced")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<pad>", "<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=len(wordpiece_vocabulary()),
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([long_text(500), *ENGLISH.split()], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 3), ("<s>", 2), trim_offsets=False)
    names = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **names).save_pretrained(folder)
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


@pytest.fixture
def foreign_tokens(monkeypatch: pytest.MonkeyPatch) -> Encoding:
    """A vocabulary under the name of tiktoken's cl100k_base, as if it had been loaded: English words and their starts.

    Some of its ids are beyond the tiny checkpoints' vocabularies.
    """
    tiktoken = pytest.importorskip("tiktoken", reason="needs tiktoken: pip install 'embaudit[tiktoken]'")
    ranks = {bytes([byte]): byte for byte in range(256)}
    for word in ENGLISH.split():
        spelled = f" {word}".encode()
        for end in range(2, len(spelled) + 1):
            ranks.setdefault(spelled[:end], len(ranks))
    found = tiktoken.Encoding("cl100k_base", pat_str=r" ?\w+| ?[^\s\w]+|\s+", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {"cl100k_base": found})
    # No file of this machine's own beside it.
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    return found
