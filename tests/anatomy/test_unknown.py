"""Models that no family fits: a clear error, and everything that needs no layers still runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as t
from tiny import tiny_bert
from tiny_families import build
from torch import nn

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.checkpoint.anatomy.families import FAMILIES
from embaudit.words.errors import NotMeasurable

SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
FUNNEL = {"vocab_size": 50, "d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 24, "block_sizes": [1, 1]}


@pytest.mark.parametrize(
    ("kind", "build_model"),
    [
        ("deberta-v2", lambda: t.DebertaV2Model(t.DebertaV2Config(**SIZES))),
        ("funnel", lambda: t.FunnelModel(t.FunnelConfig(**FUNNEL))),
        ("granite", lambda: t.GraniteModel(t.GraniteConfig(**SIZES))),
        ("roberta-prelayernorm", lambda: t.RobertaPreLayerNormModel(t.RobertaPreLayerNormConfig(**SIZES))),
    ],
)
def test_an_unknown_architecture_names_itself_and_what_is_known(kind: str, build_model: Any) -> None:
    model = build_model()
    with pytest.raises(NotMeasurable) as error:
        anatomy_of(model)
    assert type(model).__name__ in error.value.happened
    assert repr(kind) in error.value.happened
    for family in FAMILIES:
        for known in family.model_types:
            assert known in error.value.happened
    assert error.value.happened.count("gpt_neox") == 1
    assert "unaffected" in error.value.kept
    assert "embaudit/checkpoint/anatomy/families" in error.value.next_step


def replaced_module(model: Any) -> str:
    model.encoder.layer[1].attention.output = nn.Linear(16, 16)
    return "dense"


def other_width(model: Any) -> str:
    model.encoder.layer[1].attention.self.value = nn.Linear(16, 8)
    return "layer 1: attention.self.value has 8 rows, not 16"


def other_heads(model: Any) -> str:
    model.config.num_attention_heads = 3
    return "W_o has 16 columns for 3 heads"


def narrower_second_layer(model: Any) -> str:
    model.encoder.layer[1].attention.output.dense = nn.Linear(8, 16)
    return "layer 1: attention.output.dense has 8 columns"


def no_layers(model: Any) -> str:
    model.encoder.layer = nn.ModuleList()
    return "it has no layers"


@pytest.mark.parametrize("change", [replaced_module, other_width, other_heads, narrower_second_layer, no_layers])
def test_a_declared_type_that_is_built_otherwise_says_where(change: Any) -> None:
    model = build("bert")
    reason = change(model)
    with pytest.raises(NotMeasurable, match="BertModel is declared as a bert model but is not built like one") as error:
        anatomy_of(model)
    assert reason in error.value.happened


def test_without_a_family_texts_are_encoded_all_the_same(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "checkpoint")
    rows = t.AutoConfig.from_pretrained(folder).vocab_size
    t.AutoModel.from_config(t.DebertaV2Config(**SIZES | {"vocab_size": rows})).save_pretrained(folder)
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    with pytest.raises(NotMeasurable, match="deberta-v2"):
        anatomy_of(checkpoint.model)
    encoder = Encoder(checkpoint)
    texts = ["the river is long", "a town in the north"]
    assert np.isfinite(encoder.encode_texts(texts)).all()
    assert len(list(encoder.token_embeddings(texts))) == 2
