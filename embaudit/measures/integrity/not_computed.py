"""What files declare and nothing computes: positions that transformers dropped, prompts that nothing picks.

Two weight files in one folder that hold other weights: one library reads the one, another the other.

Findings of the load certificate: changed, missing and unread tensors.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.files import PICKLES, SAFETENSORS
from embaudit.checkpoint.prompts import ALWAYS_DECLARED
from embaudit.checkpoint.settings import SETTINGS, read_settings
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.declared.rule import Finding, Rule
from embaudit.measures.integrity import Status
from embaudit.measures.integrity.certificate import TensorRecord, trace
from embaudit.words.sentences import first_of

# Parts of the names of modules that compute positions relative to each other.
RELATIVE = ("distance_embedding", "relative_attention", "rel_embeddings", "rotary", "rope", "alibi")
# Releases 4.49 to 4.57 compute those of BERT and its relatives; the code of 5.0 has none of it any more.
COMPUTED_BEFORE = "5"
# Names that people give to the prompts of queries and of documents; encode_query and encode_document read their own.
OF_ROLES: dict[TextKind, tuple[str, ...]] = {
    "query": ("query", "queries"),
    "document": ("document", "passage", "corpus"),
}
POSITIONS_NOT_COMPUTED = Rule(
    "positions_not_computed",
    problem_if="config.json declares a `position_embedding_type` that the installed transformers does not compute for "
    "this architecture",
    reason="it loads without a word, and every vector is another",
)
PROMPT_NOT_PICKED = Rule(
    "prompt_not_picked",
    look_if="a prompt for queries, or documents, has a name that `encode_query` and `encode_document` do not look "
    "for, and they have none of their own",
    reason="whoever asks for documents as such gets them without it",
)


def not_computed(checkpoint: Checkpoint) -> Iterator[Finding]:
    """A problem if it moves vectors, something to look at if callers can make up for it."""
    yield from _positions(checkpoint)
    yield from _prompts(checkpoint)


def _positions(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Relative positions that config.json declares, of a model that has none."""
    declared = getattr(checkpoint.model.config.get_text_config(), "position_embedding_type", None)
    if not isinstance(declared, str) or declared == "absolute":
        return
    if any(part in name for name, _ in checkpoint.model.named_modules() for part in RELATIVE):
        return
    import transformers

    yield POSITIONS_NOT_COMPUTED.finding(
        "problem",
        f'config.json declares "position_embedding_type": "{declared}", which transformers {transformers.__version__} '
        f"does not compute for {type(checkpoint.model).__name__}: it reads absolute positions in its place.",
        "Every vector is another than in training, and nothing says so when it is loaded.",
        f"Serve it with a version that computes them: pip install 'transformers<{COMPUTED_BEFORE}'",
    )


def _prompts(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Prompts for queries, or documents, that are declared under other names than those that are looked for."""
    for role, (name, prompt) in prompts_not_picked(checkpoint).items():
        yield PROMPT_NOT_PICKED.finding(
            "look",
            f"Nothing picks the prompt that {SETTINGS} declares as {name!r} ({prompt!r}): encode_{role} looks "
            f"for {role!r} and puts nothing.",
            f"The {role} that training saw had it before it.",
            f"Name it {role!r} in {SETTINGS}, or have callers say it: encode(texts, prompt_name={name!r}), or here "
            f"--{role}-prompt {name}",
        )


def prompts_not_picked(checkpoint: Checkpoint) -> dict[TextKind, tuple[str, str]]:
    """Of each role whose own prompt is not declared, the name and text of one that is meant for it."""
    settings = read_settings(checkpoint.resolved.folder)
    declared, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    found: dict[TextKind, tuple[str, str]] = {}
    for role, words in OF_ROLES.items():
        if declared.get(role) or checkpoint.reading(role).prompt.text:
            continue
        for name, text in declared.items():
            is_meant = any(word in name.lower() for word in words) and name not in (*ALWAYS_DECLARED, default)
            if text and is_meant:
                found.setdefault(role, (name, text))
    return found


# Smaller tensors may be equal by chance, and their checksums say little.
MIN_BYTES = 4_096
AGREES = 0.99
TWO_WEIGHT_FILES = Rule(
    "two_weight_files",
    look_if="another file of weights holds other values in some tensors",
    problem_if="in half of them",
    reason="what is loaded depends on the library",
)


def two_weight_files(folder: Path) -> Iterator[Finding]:
    """Tensors of model.safetensors against the storages of pytorch_model.bin, by checksum: no pickle is read."""
    one, other = folder / SAFETENSORS[0], folder / PICKLES[0]
    if not (one.is_file() and other.is_file() and zipfile.is_zipfile(other)):
        return
    with zipfile.ZipFile(other) as archive:
        stored = {(entry.file_size, entry.CRC) for entry in archive.infolist() if "/data/" in entry.filename}
    sizes = {size for size, _ in stored}
    ours = [(size, crc) for size, crc in _checksums(one) if size >= MIN_BYTES]
    compared = [each for each in ours if each[0] in sizes]
    if not compared or len(compared) < len(ours) / 2:
        # Another precision, or storages shared between tensors: nothing can be said.
        return
    equal = sum(each in stored for each in compared)
    if equal < AGREES * len(compared):
        yield TWO_WEIGHT_FILES.finding(
            "problem" if equal < len(compared) / 2 else "look",
            f"{SAFETENSORS[0]} and {PICKLES[0]} hold other weights: {len(compared) - equal} of {len(compared)} "
            "tensors differ.",
            meaning="transformers reads the first; older versions and other libraries read the second and serve "
            "another model.",
            advice=f"Remove {PICKLES[0]}, or write it again from the loaded model.",
            value=(len(compared) - equal) / len(compared),
        )


def _checksums(file: Path) -> Iterator[tuple[int, int]]:
    """(bytes, CRC-32) of every tensor of a safetensors file."""
    with file.open("rb") as opened:
        for stored in stored_tensors([file]).values():
            opened.seek(stored.start)
            crc, left = 0, stored.size
            while left and (part := opened.read(min(left, 1 << 22))):
                crc, left = zlib.crc32(part, crc), left - len(part)
            yield stored.size, crc


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
