"""The families that embaudit knows; docs/families.md lists them."""

from embaudit.checkpoint.anatomy.families.decoders import (
    GEMMA,
    GEMMA2,
    GEMMA3,
    GPT2,
    GPT_NEOX,
    GPT_NEOX_SEQUENTIAL,
    LLAMA,
    PHI3,
    QWEN3,
)
from embaudit.checkpoint.anatomy.families.encoders import (
    ALBERT,
    BERT,
    DISTILBERT,
    MODERNBERT,
    MPNET,
    ROTARY_POST_NORM,
    T5,
    UMT5,
)
from embaudit.checkpoint.anatomy.family import Family

FAMILIES: tuple[Family, ...] = (
    BERT,
    DISTILBERT,
    MPNET,
    ALBERT,
    T5,
    UMT5,
    ROTARY_POST_NORM,
    MODERNBERT,
    LLAMA,
    QWEN3,
    PHI3,
    GEMMA,
    GEMMA2,
    GEMMA3,
    GPT2,
    GPT_NEOX,
    GPT_NEOX_SEQUENTIAL,
)
