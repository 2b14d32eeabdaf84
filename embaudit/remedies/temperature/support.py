"""Whether scaling a checkpoint's weights yields softmax(QKᵀ/(τ√d)); docs/families.md has the table."""

from __future__ import annotations

from typing import Literal, NamedTuple

from embaudit.checkpoint.anatomy import Anatomy


class Support(NamedTuple):
    """Whether a family supports TempScale, and why.

    ``exact``: the formula holds. ``option``: it holds, and the published code's variant, which also divides the
    position bias, is available. ``unsupported``: no scaling of weights achieves it.
    """

    kind: Literal["exact", "option", "unsupported"]
    reason: str


def support_of(anatomy: Anatomy) -> Support:
    """How this model supports temperature scaling."""
    family = anatomy.family
    config = anatomy.model.config.get_text_config()
    if family.softcaps and getattr(config, "attn_logit_softcapping", None) is not None:
        return Support(
            "unsupported",
            f"{family.name} soft-caps its scaled logits with a tanh (attn_logit_softcapping = "
            f"{config.attn_logit_softcapping:g}), and τ would have to divide the result.",
        )
    limits = []
    if family.query_norm is not None:
        limits.append("heads share the gain of the query norm: no τ per head")
    if anatomy.shares_layers:
        limits.append("layers share their weights: no τ per layer")
    how = "W_q and b_q are divided by τ" if family.query_norm is None else "the gain of the query norm is divided by τ"
    if family.position_bias is None and family.shared_position_bias is None:
        return Support("exact", "; ".join([how, *limits]))
    if family.shared_position_bias is not None:
        limits.append("layers share the bias table: no τ per layer if it is divided")
    bias = "the position bias is left unchanged unless requested otherwise"
    return Support("option", "; ".join([how, bias, *limits]))
