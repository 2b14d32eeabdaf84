"""Every file beside the weights: held against them if it can be, and otherwise named, with what would measure it.

A tokenizer of its own beside an exported file is read by servers of that folder in place of the checkpoint's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.agreement import KINDS
from embaudit.checkpoint.files import ExportedFile, Format, exports_of, format_of, read_object, refuse_pointers
from embaudit.checkpoint.onnx_encoder import INSTALL, has_onnxruntime
from embaudit.checkpoint.onnx_file import OnnxFile, UnsafeFile, read_onnx
from embaudit.checkpoint.tokenizer import NO_LIMIT, TOKENIZER_CONFIG
from embaudit.declared.rule import Finding, Rule
from embaudit.words.errors import CheckpointError, EmbauditError, one_line
from embaudit.words.sentences import first_of, quoted

FILE = "tokenizer.json"
TEXTS = tuple(text for some in KINDS.values() for text in some)
RULE = Rule(
    "export_tokenizer",
    look_if="it cannot be read",
    problem_if="the tokenizer beside the file makes other tokens than the checkpoint's, or cuts at another length "
    "than any of the checkpoint's files declares",
    reason="servers of that folder read it",
)


def tokenizer_findings(checkpoint: Checkpoint, folder: Path) -> Iterator[Finding]:
    """Whether the tokenizer of an export's folder reads texts as the checkpoint's file does; nothing if it has none.

    The two files are held against each other, since settings of sentence-transformers are in neither.
    """
    own = checkpoint.resolved.folder / checkpoint.recipe.tokenizer_path
    if folder.resolve() == own.resolve() or not ((folder / FILE).is_file() and (own / FILE).is_file()):
        return
    name = (folder / FILE).relative_to(checkpoint.resolved.folder).as_posix()
    try:
        theirs, ours = _read(folder / FILE), _read(own / FILE)
        limits = [(name, _limit(theirs)), (f"{Path(name).parent}/{TOKENIZER_CONFIG}", _declared(folder))]
        known = {_limit(ours), _declared(own), checkpoint.max_length, NO_LIMIT}
    except CheckpointError as error:
        yield RULE.finding("look", error.happened, "Servers of that folder cannot read texts.", error.next_step)
        return
    for tokenizer in (theirs, ours):
        tokenizer.no_truncation()
        tokenizer.no_padding()
    differing = [text for text in TEXTS if theirs.encode(text).ids != ours.encode(text).ids]
    if differing:
        yield RULE.finding(
            "problem",
            f"{name} makes other tokens of {len(differing)} of {len(TEXTS)} texts than the checkpoint's own, "
            f"{quoted(differing[0])} first.",
            "Servers that read that folder give such texts other vectors.",
            f"Copy the checkpoint's {FILE} there, or remove it.",
            float(len(differing)),
        )
    for file, limit in limits:
        if limit not in known:
            yield RULE.finding(
                "problem",
                f"{file} cuts texts after {limit} tokens, where the checkpoint reads {checkpoint.max_length}.",
                "Servers that read that folder give longer texts other vectors.",
                f"Set its limit to {checkpoint.max_length}.",
                float(limit),
            )


def _read(file: Path) -> Any:
    from tokenizers import Tokenizer

    refuse_pointers(file.parent, [file])
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises a bare Exception on a broken file
        raise CheckpointError(
            f"{file} cannot be read: {one_line(error)}", next_step="Download it again, or remove it."
        ) from error


def _limit(tokenizer: Any) -> int:
    return int(tokenizer.truncation["max_length"]) if tokenizer.truncation else NO_LIMIT


def _declared(folder: Path) -> int:
    """``model_max_length``, where a file gives one."""
    path = folder / TOKENIZER_CONFIG
    declared = read_object(path).get("model_max_length") if path.is_file() else None
    return min(int(declared), NO_LIMIT) if isinstance(declared, int | float) and declared > 0 else NO_LIMIT


# How a file is served whose format is not run here.
SERVED: dict[Format, str] = {"GGUF": "llama-server --embedding -m {path} --port 8080"}
NAMED_AT_MOST = 4
OLDER = "Servers that read these files may serve another model, such as an older revision."
UNREADABLE = Rule(
    "export_unreadable",
    look_if="a pointer, a web page, empty, cut off, or its weights are missing",
    reason="whoever downloads it, sees it fail",
)
UNSAFE = Rule("export_unsafe", problem_if="it names weights outside the checkpoint", reason="it is not loaded")
NOT_HELD = Rule(
    "export_not_measured",
    reason="`not measured`: onnxruntime is not installed or does not run it, another runtime's, or on the hub only; "
    "with what would measure it",
)


def export_findings(checkpoint: Checkpoint, figures: dict[str, Any], *, runs: bool = True) -> list[Finding]:
    """What there is beside the weights for other runtimes, and whether it is the same function; none if nothing is.

    Args:
        figures: receives ``exports``, a row for each output that was held against the weights.
        runs: whether anything may be run: if not, what can be is named like the rest.
    """
    folder = checkpoint.resolved.folder
    exports = exports_of(folder, checkpoint.recipe.transformer_path)
    on_the_hub = _on_the_hub(checkpoint, exports)
    if not exports:
        return on_the_hub
    found: list[Finding] = []
    readable: dict[ExportedFile, OnnxFile | None] = {}
    for export in exports:
        try:
            if export.format == "ONNX":
                readable[export] = read_onnx(export.path, folder)
            else:
                refuse_pointers(export.path.parent, [export.path] if export.path.is_file() else [])
                readable[export] = None
        except CheckpointError as error:
            found.append(_unreadable(export, error))
    for place in sorted({export.path.parent for export in exports}):
        found += tokenizer_findings(checkpoint, place)
    onnx = {export: file for export, file in readable.items() if file is not None}
    others = [export for export, file in readable.items() if file is None]
    if onnx and runs and has_onnxruntime():
        found += _held(checkpoint, onnx, figures)
    else:
        others += onnx
    return [*found, *([_not_held(checkpoint, sorted(others), runs=runs)] if others else ()), *on_the_hub]


def _held(checkpoint: Checkpoint, files: dict[ExportedFile, OnnxFile], figures: dict[str, Any]) -> list[Finding]:
    # Nothing of this is imported where there are no such files.
    from embaudit.questions.exports.findings import findings_of
    from embaudit.questions.exports.held import ExportComparison, OwnVectors

    beside = OwnVectors(checkpoint)
    held: list[ExportComparison] = []
    found: list[Finding] = []
    for export, file in files.items():
        try:
            # What a file gave before it failed is kept.
            held.extend(beside.hold(file, export.name))
        except Exception as error:  # a stranger's file may raise anything; the others are held all the same
            found.append(_not_run(export, error))
    figures["exports"] = [one.as_json() for one in held]
    return [*findings_of(held, str(checkpoint.resolved.ref)), *found]


def _unreadable(export: ExportedFile, error: CheckpointError) -> Finding:
    if isinstance(error, UnsafeFile):
        return UNSAFE.finding(
            "problem",
            error.happened,
            "Whoever loads it reads a file of the machine that it runs on as weights.",
            error.next_step,
        )
    return UNREADABLE.finding(
        "look",
        error.happened,
        f"Servers that read {export.name} fail, or serve what they downloaded before.",
        error.next_step,
    )


def _not_run(export: ExportedFile, error: Exception) -> Finding:
    reason, advice = f"{type(error).__name__}: {one_line(error)}", "Report it, with the name of the file."
    if isinstance(error, EmbauditError):
        reason, advice = error.happened, error.next_step
    return NOT_HELD.finding(
        "not measured",
        f"Whether {export.name} is the weights was not measured: {reason}",
        "Servers that read it may serve another model.",
        advice,
    )


def _not_held(checkpoint: Checkpoint, exports: list[ExportedFile], *, runs: bool) -> Finding:
    """One finding for all files that are not run here."""
    reference = shlex.quote(str(checkpoint.resolved.ref))
    names = [f"{export.name} ({export.format})" for export in exports]
    return NOT_HELD.finding(
        "not measured",
        f"Beside the weights {'lies' if len(names) == 1 else 'lie'} {_shown(names)}: not compared with them.",
        OLDER,
        " ".join(_how_to_measure(exports, reference)) if runs else f"Check it whole: embaudit check {reference}",
        float(len(names)),
    )


def _on_the_hub(checkpoint: Checkpoint, exports: list[ExportedFile]) -> list[Finding]:
    """Such files of the checkpoint's repository, which are not downloaded with it; none if the hub does not answer."""
    ref, revision = checkpoint.resolved.ref, checkpoint.resolved.revision
    if ref.kind != "hub":
        return []
    from embaudit.system.hub import Repository

    try:
        files = Repository("model", ref.name, revision, "").info().files
    except EmbauditError:
        return []
    here = {export.name for export in exports}
    names = [f"{name} ({kind})" for name in files if (kind := format_of(name)) is not None and name not in here]
    if not names:
        return []
    target = ref.name.partition("/")[2]
    return [
        NOT_HELD.finding(
            "not measured",
            f"On the hub beside the weights {'lies' if len(names) == 1 else 'lie'} {_shown(names)}, which "
            f"{'is' if len(names) == 1 else 'are'} not downloaded with a checkpoint: not compared with the weights.",
            OLDER,
            f"hf download {ref.name} --revision {revision} --local-dir {target} && embaudit check ./{target}",
            float(len(names)),
        )
    ]


def _shown(names: list[str]) -> str:
    return first_of(names, NAMED_AT_MOST)


def _how_to_measure(exports: list[ExportedFile], reference: str) -> list[str]:
    formats = {export.format: export for export in reversed(exports)}
    steps = []
    if "ONNX" in formats:
        steps.append(f"{INSTALL}, and check again.")
    if "OpenVINO" in formats:
        steps.append(f"embaudit parity {reference} --with {reference} --with-backend openvino")
    rest = [kind for kind in formats if kind not in ("ONNX", "OpenVINO")]
    if rest:
        served = SERVED.get(rest[0], "").format(path=shlex.quote(str(formats[rest[0]].path)))
        serve = f"Serve {'it' if len(exports) == 1 else 'each'}{f' ({served})' if served else ''} and compare: "
        steps.append(f"{serve}embaudit parity {reference} --with http://localhost:8080")
    return steps
