"""The families that embaudit knows, one small file each; docs/families.md lists them."""

from embaudit.anatomy.families.albert import ALBERT
from embaudit.anatomy.families.bert import BERT
from embaudit.anatomy.families.distilbert import DISTILBERT
from embaudit.anatomy.families.gemma import GEMMA, GEMMA2, GEMMA3
from embaudit.anatomy.families.gpt2 import GPT2
from embaudit.anatomy.families.gpt_neox import GPT_NEOX, GPT_NEOX_SEQUENTIAL
from embaudit.anatomy.families.llama import LLAMA, PHI3, QWEN3
from embaudit.anatomy.families.modernbert import MODERNBERT
from embaudit.anatomy.families.mpnet import MPNET
from embaudit.anatomy.families.rotary_post_norm import ROTARY_POST_NORM
from embaudit.anatomy.families.t5 import T5, UMT5
from embaudit.anatomy.family import Family

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
