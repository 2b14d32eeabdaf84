"""Runs every part of the check on one checkpoint; a part that fails is reported and never counts as passed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from embaudit.checking.page import check_page
from embaudit.checking.verdict import LEVEL_OF, Verdict, verdict_of
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.modules import NoTransformer
from embaudit.comparisons.change.change import change_report
from embaudit.comparisons.exports.files import export_findings
from embaudit.comparisons.report import Report
from embaudit.document import Page
from embaudit.errors import CheckpointError
from embaudit.finding import Finding, Level, guarded
from embaudit.measures.integrity.function import function_findings
from embaudit.measures.integrity.integrity import integrity_findings
from embaudit.measures.integrity.numerics import numeric_findings
from embaudit.measures.integrity.tables import TOKENIZER
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.measured import Measured
from embaudit.measures.quality.quality import quality_findings

# Called with a line for whoever waits.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class CheckReport(Report):
    """What a check found.

    Attributes:
        checkpoint: as the user named it.
        checkpoint_id: None if it cannot be loaded.
        findings: in the order of the parts.
        figures: the numbers behind them, for ``--json``.
        base: what it was compared with, as the user named it; None without one.
        kind: what was checked: a checkpoint, an endpoint …
        interface: of what is no checkpoint, by which it was asked and how many dimensions it gives.
    """

    levels: ClassVar[Mapping[str, Level]] = LEVEL_OF

    checkpoint: str
    checkpoint_id: str | None
    findings: tuple[Finding, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    base: str | None = None
    kind: str = "checkpoint"
    interface: str = ""

    @property
    def summary(self) -> Verdict:
        return verdict_of(self.findings)

    @property
    def verdict(self) -> str:
        return self.summary.kind

    @property
    def cause(self) -> Finding | None:
        return self.summary.cause

    @property
    def line(self) -> str:
        return self.summary.line

    def page(self) -> Page:
        return check_page(self)

    def as_json(self) -> dict[str, Any]:
        summary = self.summary
        return {
            "checkpoint": self.checkpoint,
            "checkpoint_id": self.checkpoint_id,
            "kind": self.kind,
            "interface": self.interface or None,
            "base": self.base,
            "verdict": summary.kind,
            "line": summary.line,
            "cause": None if summary.cause is None else summary.cause.name,
            "not_measured": list(summary.unmeasured),
            "findings": [asdict(finding) for finding in self.by_level()],
            "figures": self.figures,
            "seconds": round(self.seconds, 1),
        }


def check(
    reference: str,
    options: LoadOptions | None = None,
    material: Material | None = None,
    base: str | None = None,
    progress: Progress = lambda line: None,
) -> CheckReport:
    """Check a checkpoint: integrity, files beside the weights, then quality, then what changed against a base.

    A checkpoint that cannot be loaded gets a report too: do not serve, and why.

    Args:
        reference: packaged:NAME, a folder, or owner/name@revision.
        options: how to load it; float32 whatever they say.
        material: scored pairs and judged queries; by default, the embedded sample.
        base: what it was made from, or its previous revision: loaded with the same options. If it cannot be loaded,
            the checkpoint is checked all the same, and the verdict says that this part is missing.
        progress: told the verdict so far before the base is compared, which takes as long again.

    Raises:
        NoTransformer: if it is no transformer, but may give one vector a text.
    """
    start = time.monotonic()
    options = options or LoadOptions()
    try:
        checkpoint = load_checkpoint(reference, options)
    except NoTransformer:
        # Its vectors can be checked all the same.
        raise
    except CheckpointError as error:
        return not_loadable(reference, error, time.monotonic() - start, base)
    figures: dict[str, Any] = {}

    def before_base(findings: list[Finding]) -> None:
        progress(f"{reference}: {verdict_of(findings).so_far} What has changed against {base} comes next.")

    findings = _parts(checkpoint, options, material or sample_material(), figures, base, before_base)
    return CheckReport(reference, checkpoint.checkpoint_id, tuple(findings), figures, time.monotonic() - start, base)


def not_loadable(reference: str, error: CheckpointError, seconds: float = 0.0, base: str | None = None) -> CheckReport:
    """The report of a checkpoint that cannot be loaded."""
    finding = Finding(
        "problem",
        error.happened,
        "It cannot be loaded as it would be served.",
        error.next_step,
        name="not_loadable",
    )
    return CheckReport(reference, None, (finding,), seconds=seconds, base=base)


def _parts(
    checkpoint: Checkpoint,
    options: LoadOptions,
    material: Material,
    figures: dict[str, Any],
    base: str | None,
    before_base: Callable[[list[Finding]], None],
) -> list[Finding]:
    encoder = Encoder(checkpoint)
    found = guarded("integrity", lambda: integrity_findings(checkpoint))
    found += guarded("one_function", lambda: function_findings(encoder))
    found += guarded("numerics", lambda: numeric_findings(encoder, options))
    found += guarded("files_beside_the_weights", lambda: export_findings(checkpoint, figures))
    measured: list[Measured] = []
    is_broken = any(finding.level == "problem" and finding.name in TOKENIZER for finding in found)

    def quality() -> list[Finding]:
        report = quality_findings(encoder, material, tokenizer_is_broken=is_broken)
        figures.update(report.figures)
        measured.extend(report.measured)
        return list(report.findings)

    def beside_base() -> list[Finding]:
        assert base is not None
        report = change_report(checkpoint, load_checkpoint(base, options), sample_material(), measured)
        figures["change"] = report.figures
        return report.findings

    found += guarded("quality", quality)
    if base is not None:
        before_base(found)
        found += guarded("what_changed_against_the_base", beside_base)
    return found
