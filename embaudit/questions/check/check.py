"""Runs every part of the check on one checkpoint; a part that fails is reported and never counts as passed.

``embaudit check --files``: what needs no forward pass, of a checkpoint whose weights stay in their files.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.files import weight_files
from embaudit.checkpoint.load import load_from_files
from embaudit.checkpoint.model import forget_models
from embaudit.checkpoint.modules import NoTransformer
from embaudit.checkpoint.streamed import giving_back, is_in_files
from embaudit.declared.document import Page
from embaudit.declared.rule import COULD_NOT_RUN, FAILED, Finding, Level, Rule, guarded, worst_first
from embaudit.measures.integrity import TOKENIZER
from embaudit.measures.integrity.function import function_findings
from embaudit.measures.integrity.integrity import integrity_findings
from embaudit.measures.integrity.numerics import HardTexts, InFloat32, full_findings, half_findings
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.quality import QualityReport, no_figures, quality_findings
from embaudit.measures.quality.scores import fewer
from embaudit.questions.change.change import TunedResults, change_report
from embaudit.questions.check.page import check_page
from embaudit.questions.check.verdict import FILES_ONLY, LEVEL_OF, Verdict, verdict_of
from embaudit.questions.exports.files import export_findings
from embaudit.questions.report import AnswerFigure, Report, figure_of
from embaudit.words.errors import EXIT_USAGE, CheckpointError
from embaudit.words.estimate import Estimate

# The parts, in the words of whoever stopped before them; half precision is a part of numerics.
PARTS = {
    "integrity": "files, tokenizer and weights",
    "one_function": "whether a text has one vector",
    "numerics": "numbers in float32",
    "exports": "files beside the weights",
    "quality": "scores",
    "halves": "numbers in half precision",
    "change": "what changed against the base",
}
IN_FILES = "its weights stay in their files, and a layer's are in memory while it computes: the vectors are the same."
STOPPED = f"stopped{COULD_NOT_RUN}"
NOT_LOADABLE = Rule(
    "not_loadable", problem_if="it cannot be loaded as it would be served", reason="[checkpoints](checkpoints.md)"
)
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

    @property
    def exit_code(self) -> int:
        """As for every report; whatever was found until then, a check that was stopped is not a whole one."""
        return EXIT_USAGE if any(finding.name == STOPPED for finding in self.findings) else super().exit_code

    def page(self) -> Page:
        return check_page(self)

    def answer_figures(self) -> Iterator[AnswerFigure]:
        for data in self.figures.get("data", ()):
            scores = {data["metric"]: data["score"], "auc": data.get("auc")}
            scores |= {f"{data['metric']}, {name}": one["score"] for name, one in data["baselines"].items()}
            for name, score in scores.items():
                if score is not None:
                    yield figure_of(name, Estimate(**score), data["name"], data["items"])
        for name, scale in self.figures.get("scale", {}).items():
            yield figure_of("threshold", Estimate(**scale["threshold"]), name)

    def content(self) -> dict[str, Any]:
        summary = self.summary
        return {
            "checkpoint": self.checkpoint,
            "checkpoint_id": self.checkpoint_id,
            "kind": self.kind,
            "interface": self.interface or None,
            "base": self.base,
            "cause": None if summary.cause is None else summary.cause.name,
            "not_measured": list(summary.unmeasured),
            "measured": self.figures,
        }


def check(
    reference: str,
    options: LoadOptions | None = None,
    material: Material | None = None,
    base: str | None = None,
    progress: Progress = lambda line: None,
    *,
    keeps_what_ran: bool = False,
) -> CheckReport:
    """Check a checkpoint: integrity, files beside the weights, then quality, then what changed against a base.

    A checkpoint that cannot be loaded gets a report too: do not serve, and why.

    Args:
        reference: packaged:NAME, a folder, or owner/name@revision.
        options: how to load it; float32 whatever they say.
        material: scored pairs and judged queries; by default, the embedded sample.
        base: what it was made from, or its previous revision: loaded with the same options. If it cannot be loaded,
            the checkpoint is checked all the same, and the verdict says that this part is missing.
        progress: told what the files say before the network is run, and the verdict so far before the base is compared,
            which takes as long again.
        keeps_what_ran: whether Ctrl-C ends in a report on the parts that ran, once the checkpoint is loaded.

    Raises:
        NoTransformer: if it is no transformer, but may give one vector a text.
    """
    start = time.monotonic()
    options = options or LoadOptions()
    try:
        checkpoint = load_checkpoint(reference, options, may_stay_in_files=True)
    except NoTransformer:
        # Its vectors can be checked all the same.
        raise
    except CheckpointError as error:
        return not_loadable(reference, error, time.monotonic() - start, base)
    figures: dict[str, Any] = {}
    if is_in_files(checkpoint.model):
        figures["weights_in_files"] = True
        progress(f"{reference}: {IN_FILES}")
    checkpoint_id = checkpoint.checkpoint_id
    parts = _Parts(reference, options, material or sample_material(), base, figures, progress)
    # Nobody but the parts holds it, so that they can let it go.
    loaded = [checkpoint]
    del checkpoint
    try:
        parts.run(loaded)
    except KeyboardInterrupt:
        if not keeps_what_ran:
            raise
        parts.found["stopped"] = [parts.stopped()]
    return CheckReport(reference, checkpoint_id, tuple(parts.findings), figures, time.monotonic() - start, base)


def not_loadable(reference: str, error: CheckpointError, seconds: float = 0.0, base: str | None = None) -> CheckReport:
    """The report of a checkpoint that cannot be loaded."""
    finding = NOT_LOADABLE.finding(
        "problem", error.happened, "It cannot be loaded as it would be served.", error.next_step
    )
    return CheckReport(reference, None, (finding,), seconds=seconds, base=base)


@dataclass
class _Parts:
    """The parts of a check and what they have found, in their order."""

    reference: str
    options: LoadOptions
    material: Material
    base: str | None
    figures: dict[str, Any]
    progress: Progress
    found: dict[str, list[Finding]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=lambda: dict(PARTS))
    sample: Material = field(default_factory=sample_material)

    @property
    def findings(self) -> list[Finding]:
        return [finding for some in self.found.values() for finding in some]

    def run(self, loaded: list[Checkpoint]) -> None:
        """Run them all.

        Args:
            loaded: the checkpoint, which is taken out: it is in memory while a part needs it.
        """
        exact, ran = self._in_full(Encoder(loaded.pop()))
        # Half precision comes next, then the base: the weights are in memory once.
        forget_models()
        if exact is not None:
            self.found["numerics"] += guarded("numerics", lambda: half_findings(exact, self.options))
        self.left.pop("halves")
        if self.base is not None:
            self._beside_base(self.base, ran)

    def stopped(self) -> Finding:
        """What was not measured because somebody stopped the check."""
        left = [words for part, words in self.left.items() if part != "change" or self.base is not None]
        return FAILED.finding(
            "not measured",
            f"The check was stopped. Not measured: {', '.join(left)}.",
            "What these parts would have found is unknown.",
            "Run the same command again.",
            part="stopped",
        )

    def _run(self, part: str, check: Callable[[], list[Finding]], called: str = "") -> None:
        self.found[part] = guarded(called or part, check)
        self.left.pop(part)

    def _in_full(self, encoder: Encoder) -> tuple[InFloat32 | None, TunedResults | None]:
        """What is read in float32: what half precision and a base are held against."""
        checkpoint = encoder.checkpoint
        self._run("integrity", lambda: integrity_findings(checkpoint))
        self._say_of_files()
        hard = HardTexts(encoder)
        self._run("one_function", lambda: function_findings(encoder, hard))
        exact = self._numerics(encoder, hard)
        self._run("exports", lambda: export_findings(checkpoint, self.figures), "files_beside_the_weights")
        quality = self._quality(encoder)
        return exact, None if self.base is None else self._for_base(checkpoint, quality)

    def _for_base(self, checkpoint: Checkpoint, quality: QualityReport) -> TunedResults | None:
        ran: list[TunedResults] = []

        def for_base() -> list[Finding]:
            self.sample = fewer(checkpoint, self.sample).read
            ran.append(TunedResults.of(checkpoint, self.sample, quality.measured, quality.golden))
            return []

        self.found["for_base"] = guarded("vectors_beside_the_base", for_base)
        return ran[0] if ran else None

    def _say_of_files(self) -> None:
        """What is known before the network is run, which takes most of the time."""
        worst = worst_first(self.findings)[0]
        rest = sum(finding.level in ("problem", "look") for finding in self.findings) - 1
        said = "nothing found wrong."
        if rest >= 0:
            said = f"{worst.level}: {worst.sentence}{f' ({rest} more)' if rest else ''}"
        self.progress(f"Files, tokenizer and weights of {self.reference}: {said} The network is run next.")

    def _numerics(self, encoder: Encoder, hard: HardTexts) -> InFloat32 | None:
        exact: list[InFloat32 | None] = [None]

        def in_full() -> list[Finding]:
            findings, exact[0] = full_findings(encoder, hard)
            return findings

        self._run("numerics", in_full)
        return exact[0]

    def _quality(self, encoder: Encoder) -> QualityReport:
        reports = [QualityReport((), no_figures())]
        is_broken = any(finding.level == "problem" and finding.name in TOKENIZER for finding in self.findings)

        def quality() -> list[Finding]:
            part = fewer(encoder.checkpoint, self.material)
            report = quality_findings(encoder, part.read, tokenizer_is_broken=is_broken)
            self.figures.update(report.figures)
            self.figures["texts"] = part.figures()
            reports.append(report)
            return [*report.findings, *part.findings()]

        self._run("quality", quality)
        return reports[-1]

    def _beside_base(self, base: str, ran: TunedResults | None) -> None:
        so_far = verdict_of(self.findings).so_far
        self.progress(f"{self.reference}: {so_far} What has changed against {base} comes next.")

        def beside_base() -> list[Finding]:
            tuned, before = (load_from_files(reference, self.options) for reference in (self.reference, base))
            folders = [one.resolved.folder / one.recipe.transformer_path for one in (tuned, before)]
            with giving_back([path for folder in folders for path in weight_files(folder)]):
                report = change_report(
                    tuned,
                    before,
                    self.sample,
                    ran,
                    lambda: load_checkpoint(base, self.options, is_kept=False, may_stay_in_files=True),
                )
            self.figures["change"] = report.figures
            return report.findings

        self._run("change", beside_base, "what_changed_against_the_base")


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
