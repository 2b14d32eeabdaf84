"""The published tables: what identifies a row, and how an audit's rows replace older ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PublishedTable:
    """One table that staged files are published into.

    Attributes:
        keys: columns that identify a row within one audit (or one checkpoint, or one corpus).
        scope: ``audit`` rows carry the audit's id; ``content`` rows belong to a checkpoint or corpus and are
            the same whichever audit brought them.
        is_bulk: no key index; checked shard by shard.
        is_kept: the first key is a hash of the content: rows that are there already are left as they are.
        is_detail: rows by token, text or pair that no summary, verdict or comparison needs once it is made:
            `embaudit prune` may delete them.
    """

    name: str
    keys: tuple[str, ...]
    scope: Literal["audit", "content"] = "audit"
    is_bulk: bool = False
    is_kept: bool = False
    is_detail: bool = False


TABLES = {
    table.name: table
    for table in (
        PublishedTable("checkpoint", ("checkpoint_id",), scope="content"),
        PublishedTable("corpus", ("corpus_id",), scope="content", is_kept=True),
        PublishedTable("text", ("corpus_id", "position"), scope="content", is_kept=True),
        PublishedTable("text_pair", ("corpus_id", "position"), scope="content", is_kept=True),
        PublishedTable("audit_corpus", ("name",)),
        PublishedTable("token", ("checkpoint_id", "token_id"), scope="content"),
        PublishedTable("sticky_pair", ("purpose", "position")),
        PublishedTable("sticky_score", ("token_id",), is_detail=True),
        PublishedTable("sticky_validation", ("token_id", "protocol")),
        PublishedTable("sticky_summary", ("protocol",)),
        PublishedTable("sticky_dose", ("token_id", "copies")),
        PublishedTable("sticky_shift", ("token_id", "position"), is_detail=True),
        PublishedTable("sticky_attention", ("layer", "includes_special")),
        PublishedTable("sticky_enrichment", ("selection", "attribute", "value")),
        PublishedTable("sticky_reference", ("token_id",), is_detail=True),
        PublishedTable("sticky_reference_summary", ("protocol",)),
        PublishedTable("socm_text", ("corpus", "position"), is_detail=True),
        PublishedTable("socm_pair", ("corpus", "first", "second"), is_bulk=True, is_detail=True),
        PublishedTable("socm_listed_pair", ("corpus", "position"), is_detail=True),
        PublishedTable("socm_summary", ("corpus",)),
        PublishedTable("socm_surface", ("corpus", "alpha", "beta")),
        PublishedTable("socm_tightness", ("corpus", "first", "second")),
        PublishedTable("socm_plane", ("corpus", "pair", "position", "point")),
        PublishedTable("audit_backbone", ("audit_id", "backbone_audit_id"), scope="content"),
        PublishedTable("watched_revision", ("source", "revision", "parameters_key"), scope="content"),
        PublishedTable(
            "regression", ("audit_id", "predecessor_audit_id", "summary", "item", "measure"), scope="content"
        ),
        PublishedTable("layer_text", ("corpus", "position", "layer"), is_detail=True),
        PublishedTable("layer_stat", ("corpus", "layer")),
        PublishedTable("layer_head_stat", ("corpus", "layer", "head")),
        PublishedTable("length_bin", ("corpus", "condition", "low")),
        PublishedTable("length_rise", ("corpus", "condition")),
        PublishedTable("length_summary", ("corpus",)),
        PublishedTable("length_pair", ("corpus", "rank")),
        PublishedTable("length_sigma", ("corpus", "layer", "head", "length")),
        PublishedTable("tempscale", ("task", "arm", "tau", "split", "bin")),
        PublishedTable("tempscale_choice", ("task", "bin")),
        PublishedTable(
            "gate_result",
            ("audit_id", "policy_hash", "baseline_audit_id", "rule", "summary", "item", "measure"),
            scope="content",
        ),
    )
}
