"""Whether softmax(QKᵀ/(τ√d)) can be had from a checkpoint's weights; docs/families.md is the table."""

from __future__ import annotations

from typing import Literal, NamedTuple

from embaudit.anatomy import Anatomy


class Support(NamedTuple):
    """What TempScale is on a family, and why.

    ``exact``: the formula holds. ``option``: it holds, and the published code's reading of it, which also divides the
    position bias, can be chosen. ``unsupported``: no scaling of weights gives it.
    """

    kind: Literal["exact", "option", "unsupported"]
    reason: str


def support_of(anatomy: Anatomy) -> Support:
    """What temperature scaling is on this model."""
    family = anatomy.family
    config = anatomy.model.config.get_text_config()
    if family.softcaps and getattr(config, "attn_logit_softcapping", None) is not None:
        return Support(
            "unsupported",
            f"{family.name} squashes its scaled logits with a tanh (attn_logit_softcapping = "
            f"{config.attn_logit_softcapping:g}), which τ would have to divide from outside.",
        )
    limits = []
    if family.query_norm is not None:
        limits.append("heads share the gain of the norm of queries: no τ by head")
    if anatomy.shares_layers:
        limits.append("layers share their weights: no τ by layer")
    how = (
        "W_q and b_q are divided by τ"
        if family.query_norm is None
        else "the gain of the norm of queries is divided by τ"
    )
    if family.position_bias is None and family.shared_position_bias is None:
        return Support("exact", "; ".join([how, *limits]))
    if family.shared_position_bias is not None:
        limits.append("layers share one table of it: none by layer when it is divided")
    bias = "the position bias stays as it is, unless it is to be divided too"
    return Support("option", "; ".join([how, bias, *limits]))
