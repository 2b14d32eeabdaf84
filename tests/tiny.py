"""A checkpoint of a few kilobytes in the sentence-transformers layout, with random weights.

Real files that real loaders read: tests of flows, measures and checkpoints build one in milliseconds instead of
downloading one. Random weights make its vectors meaningless, so no test may expect sense of its similarities.
"""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[unused2]", "[unused3]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PUNCTUATION = list(".,;:!?'\"()-/%&")
DIGITS = list("0123456789")
# Frequent English words and pieces, so that ordinary sentences come out as words and not as letters only.
ENGLISH = """
the of and to in is was for on as with by that it he from at his an are were which be this had has not but also
they their or its one first two new after who more have other been when about time all she her only during into can
over most years between later city states there year than world such some will would out up many became where used
may made three part no people known until south through before national them american university
river town house school war team film music water sea ship king church work family found called being over under
small large high long old great north east west light sun moon star earth stone iron gold fire air plant tree bird
fish animal human body cell heart brain disease drug test study method result number law court state bank money
price market trade write read book letter word language poem song paint art colour red green blue black white round
found ground rain wind snow ice winter summer day night morning hour
"""
ENDINGS = "s ed ing er ly al ion est ity ment ness ous ive able ant ent ar or en es"


def wordpiece_vocabulary() -> list[str]:
    """Some 300 WordPiece tokens: special and unused ones, characters, English words and endings."""
    letters = [*ascii_lowercase, *("##" + letter for letter in ascii_lowercase)]
    tokens = [*SPECIAL, *PUNCTUATION, *DIGITS, *("##" + digit for digit in DIGITS), *letters, *ENGLISH.split()]
    tokens += ["##" + ending for ending in ENDINGS.split()]
    return list(dict.fromkeys(tokens))


def tiny_bert(folder: Path, *, seed: int = 0) -> Path:
    """Save a BERT with random weights (2 layers, 4 heads, d = 32, 128 positions), mean pooling and Normalize.

    Args:
        folder: where to; made if it is missing.
        seed: of the weights. The same seed writes the same bytes, hence the same checkpoint id.

    Returns:
        The folder, ready for ``load_checkpoint(str(folder))``.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    ids = {token: index for index, token in enumerate(wordpiece_vocabulary())}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=128,
    ).save_pretrained(folder)

    config = BertConfig(
        vocab_size=len(ids),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False)
        # At the default spread of 0.02 all texts are nearly parallel: words must count for more than positions.
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() == 2:
                    parameter.normal_(0.0, 1.0 if "word_embeddings" in name else 0.2)
    model.save_pretrained(folder)

    modules = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    for path in paths[1:]:
        (folder / path).mkdir(exist_ok=True)
    _write_json(
        folder / "modules.json",
        [
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for index, (kind, path) in enumerate(zip(modules, paths, strict=True))
        ],
    )
    _write_json(
        folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    )
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": False})
    return folder


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
