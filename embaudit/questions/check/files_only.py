"""``embaudit check --files``: what needs no forward pass, of a checkpoint whose weights stay in their files."""

from __future__ import annotations

import shlex
import time

from embaudit.checkpoint import LoadOptions
from embaudit.checkpoint.files import weight_files
from embaudit.checkpoint.load import load_from_files
from embaudit.checkpoint.modules import NoTransformer
from embaudit.checkpoint.streamed import giving_back
from embaudit.declared.rule import guarded
from embaudit.measures.integrity.integrity import integrity_findings
from embaudit.questions.check.check import CheckReport, Progress, not_loadable
from embaudit.questions.check.verdict import FILES_ONLY, verdict_of
from embaudit.questions.exports.files import export_findings
from embaudit.words.errors import CheckpointError

NOT_RUN = (
    "The network was not run. Not measured: whether a text has one vector alone, in a batch and again; vectors in "
    "bfloat16 and float16; the end of a long text; ONNX files; scores beside word overlap, other readings, the scale "
    "of cosines."
)


def check_files(
    reference: str, options: LoadOptions | None = None, progress: Progress = lambda line: None
) -> CheckReport:
    """Check a checkpoint's settings, tokenizer and weights; the network is not run, and the verdict says so.

    Memory does not depend on the size of the weights, unless they are pickles that cannot be mapped, of several
    precisions, or merged when they are loaded.

    Raises:
        NoTransformer: if it is no transformer: there is nothing in its files that is looked at.
    """
    start = time.monotonic()
    try:
        checkpoint = load_from_files(reference, options or LoadOptions())
    except NoTransformer:
        raise
    except CheckpointError as error:
        return not_loadable(reference, error, time.monotonic() - start)
    figures: dict[str, object] = {}
    folder = checkpoint.resolved.folder
    with giving_back(weight_files(folder / checkpoint.recipe.transformer_path)):
        found = guarded("integrity", lambda: integrity_findings(checkpoint))
    found += guarded("files_beside_the_weights", lambda: export_findings(checkpoint, figures, runs=False))
    advice = f"Check it whole before it is served: embaudit check {shlex.quote(reference)}"
    found.append(FILES_ONLY.finding("not measured", NOT_RUN, advice=advice))
    progress(f"{reference}: {verdict_of(found).line}")
    return CheckReport(reference, checkpoint.checkpoint_id, tuple(found), figures, time.monotonic() - start)
