"""The families that embaudit knows, one small file each; docs/families.md lists them."""

from embaudit.checkpoint.anatomy.families.albert import ALBERT
from embaudit.checkpoint.anatomy.families.bert import BERT
from embaudit.checkpoint.anatomy.families.distilbert import DISTILBERT
from embaudit.checkpoint.anatomy.families.gemma import GEMMA, GEMMA2, GEMMA3
from embaudit.checkpoint.anatomy.families.gpt2 import GPT2
from embaudit.checkpoint.anatomy.families.gpt_neox import GPT_NEOX, GPT_NEOX_SEQUENTIAL
from embaudit.checkpoint.anatomy.families.llama import LLAMA, PHI3, QWEN3
from embaudit.checkpoint.anatomy.families.modernbert import MODERNBERT
from embaudit.checkpoint.anatomy.families.mpnet import MPNET
from embaudit.checkpoint.anatomy.families.rotary_post_norm import ROTARY_POST_NORM
from embaudit.checkpoint.anatomy.families.t5 import T5, UMT5
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
