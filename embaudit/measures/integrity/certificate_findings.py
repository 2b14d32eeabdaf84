"""Findings of the load certificate: changed, missing and unread tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding, Rule
from embaudit.measures.integrity import Status
from embaudit.measures.integrity.certificate import TensorRecord, trace
from embaudit.words.sentences import first_of

# What is left over of a file when the encoder alone is loaded: heads, decoders, masks and tables that are computed.
HARMLESS = re.compile(
    r"(^|\.)(cls|pooler|pooling|lm_head|mlm_head|head|heads|predictions|generator_predictions|generator_lm_head"
    r"|discriminator_predictions|classifier|classification_head|qa_outputs|score|dense_prediction|vocab_\w+|pred_layer"
    r"|lm_loss|logits_proj|sequence_summary|decoder|final_logits_bias|position_ids|token_type_ids|inv_freq|masked_bias"
    r"|attn\.bias|attention\.bias|relative_position_index|num_batches_tracked|logit_scale|lm_predictions|mask_emb"
    r"|embed_positions\.weights?|nsp\w*|sop\w*|embeddings_project|r_\w+_bias|seg_embed|value_head|v_head|mtp)(\.|$)"
)
WEIGHTS_FROM_FILE = Rule(
    "weights_from_file",
    problem_if="a parameter in memory is in no file, or has other values than the file's",
    reason="what differs was initialised or changed by code; a missing pooler reaches no vector and is innocent",
)
UNREAD_WEIGHTS = Rule(
    "unread_weights",
    look_if="tensors that nothing reads, other than heads, decoders, masks; layers beyond the number that was asked "
    "for",
    problem_if="whole layers that do not run",
    reason="the config is another model's",
)


def certificate_findings(checkpoint: Checkpoint, traced: list[TensorRecord] | None = None) -> list[Finding]:
    """Findings of ``trace``: changed or missing tensors, and tensors of the body that nothing reads.

    Args:
        traced: receives the records.
    """
    records = trace(checkpoint)
    if traced is not None:
        traced += records
    findings = []
    changed = [record for record in records if record.status == "changed"]
    missing = [record for record in records if record.status == "missing"]
    in_memory = [record for record in records if record.name]
    if changed:
        findings.append(
            WEIGHTS_FROM_FILE.finding(
                "problem",
                f"{len(changed)} of {len(in_memory)} tensors in memory differ from the file that they are read from: "
                f"{first_of([record.name for record in changed])} ({changed[0].file}).",
                meaning="The network that runs is not the one that was saved: its own code initialises or changes "
                "tensors after loading them.",
                advice="Load the checkpoint twice with other seeds: what differs between the two is random. Look for "
                "_init_weights or post_init in its code.",
                value=float(len(changed)),
            )
        )
    if missing:
        findings.append(
            WEIGHTS_FROM_FILE.finding(
                "problem",
                f"{len(missing)} of {len(in_memory)} tensors in memory are in no file of the checkpoint: "
                f"{first_of([record.name for record in missing])}.",
                meaning="They are as the code initialises them, most often random.",
                advice="Compare the names in the file with those of the model: a prefix, or another architecture.",
                value=float(len(missing)),
            )
        )
    findings += _unread_findings(checkpoint, records)
    if findings:
        return findings
    files = sorted({record.file for record in in_memory if record.file})
    return [
        WEIGHTS_FROM_FILE.finding(
            "ok",
            f"All {len(in_memory)} tensors in memory hold the values of {first_of(files)}"
            + (f", except {unused} that no vector depends on." if (unused := _count(records, "unused")) else "."),
            value=0.0,
        )
    ]


def _unread_findings(checkpoint: Checkpoint, records: Sequence[TensorRecord]) -> list[Finding]:
    unread = [record for record in records if record.status == "unread" and not HARMLESS.search(record.stored_name)]
    if not unread:
        return []
    file = unread[0].file
    # Numbered like the layers that run, and beyond the last of them.
    run = {place for record in records if record.name for place in _layers(record.stored_name or record.name)}
    left = {place for record in unread for place in _layers(record.stored_name)}
    extra = sorted((stack, number) for stack, number in left - run if any(other == stack for other, _ in run))
    whole = {stack for stack, _ in extra}
    if not whole:
        return [
            UNREAD_WEIGHTS.finding(
                "look",
                f"{len(unread)} tensors of {file} {'is' if len(unread) == 1 else 'are'} read by nothing in the model: "
                f"{first_of([record.stored_name for record in unread])}.",
                meaning="If they took part in training, the vectors are not those of the trained network.",
                advice="Check that config.json (model_type, architectures, biases) belongs to these weights.",
                value=float(len(unread)),
            )
        ]
    layers = sum(stack in whole for stack, _ in run)
    is_asked = "num_hidden_layers" in checkpoint.recipe.settings.config
    return [
        UNREAD_WEIGHTS.finding(
            "look" if is_asked else "problem",
            f"{file} holds {layers + len(extra)} layers, of which {'sentence_bert_config.json' if is_asked else ''}"
            f"{'' if is_asked else 'config.json'} lets {layers} run: {extra[0][0]}.{extra[0][1]} and what follows is "
            "read by nothing.",
            meaning="The vectors are those of a network that stops in the middle.",
            advice="Set the number of layers in config.json to that of the file, or save the shorter model without the "
            "others.",
            value=float(len(extra)),
        )
    ]


def _layers(name: str) -> list[tuple[str, int]]:
    """(stack, number) of the layer that a tensor belongs to: ``encoder.layer``, 3."""
    found = re.search(r"^(.*?)\.(\d+)\.", name)
    return [(found[1], int(found[2]))] if found else []


def _count(records: Sequence[TensorRecord], status: Status) -> int:
    return sum(record.status == status for record in records)
