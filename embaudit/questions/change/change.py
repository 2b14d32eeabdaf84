"""Everything that is said of a checkpoint beside the one that it was made from: findings, and their figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.declared.rule import Finding, Rule, guarded
from embaudit.measures.quality.golden import GoldenChanges, MeasuredGolden
from embaudit.measures.quality.material import Material
from embaudit.measures.quality.measured import Measured, as_json
from embaudit.questions.change.declared import compare_configs, compare_declared, config_findings, declared_findings
from embaudit.questions.change.gains import (
    BaseComparison,
    cut_off_findings,
    gain_findings,
    measure_beside,
    measure_cut_off,
    measure_tuned,
    of_base,
)
from embaudit.questions.change.tensors import TensorChange
from embaudit.questions.change.tokens import Tokens, compare_tokens, token_findings
from embaudit.questions.change.vectors import (
    ROUNDING,
    Changed,
    HardVectors,
    Moved,
    compare_neighbours,
    compare_vectors,
    hard_vectors,
    vector_findings,
)
from embaudit.questions.change.weight_findings import NOTHING, weight_findings
from embaudit.questions.change.weights import WeightChange, compare_weights, row_findings

Figures = dict[str, Any]
GOLDEN = Rule(
    "golden_beside_the_base",
    look_if="an answer that the base finds is lost",
    reason="every one of them was chosen by somebody: what is lost, and what is won, is named",
)


@dataclass
class ChangeReport:
    """What changed between a base and a checkpoint made from it.

    Attributes:
        figures: every number behind the findings, ready for JSON.
    """

    findings: list[Finding] = field(default_factory=list)
    figures: Figures = field(default_factory=dict)


@dataclass(frozen=True)
class TunedResults:
    """What the tuned checkpoint gave while it was in memory."""

    measured: list[Measured]
    hard: HardVectors
    golden: Sequence[MeasuredGolden] = ()

    @classmethod
    def of(
        cls,
        tuned: Checkpoint,
        sample: Material,
        measured: Sequence[Measured] = (),
        golden: Sequence[MeasuredGolden] = (),
    ) -> TunedResults:
        """
        Args:
            sample: pairs and collections on which a loss is one of what the base knows in general.
            measured: what was measured of it already; data sets that are not the sample's are the user's.
            golden: golden queries with its vectors.

        Raises:
            MeasureError: if a vector is not finite.
        """
        return cls(measure_tuned(tuned, measured, sample), hard_vectors(Encoder(tuned)), golden)


def change_report(
    tuned: Checkpoint, base: Checkpoint, sample: Material, ran: TunedResults | None, run_base: Callable[[], Checkpoint]
) -> ChangeReport:
    """Compare weights, tokens, declarations, vectors, scores and scale; a part that fails is said and raises nothing.

    Args:
        tuned: what is to be served; neither it nor ``base`` is run, so that their weights may stay in their files.
        base: what it was made from, or its previous revision.
        sample: as in ``TunedResults.of``.
        ran: what the tuned checkpoint gave; None if it gave nothing, which was said.
        run_base: the base in memory, asked for when all else is done and not held any longer than it is run.

    Raises:
        torch.OutOfMemoryError: if the device's memory is too small.
    """
    report = ChangeReport()
    tokens: list[Tokens] = []
    weights: list[WeightChange] = []
    beside: list[BaseComparison] = []
    moved: list[Moved] = []
    golden: list[GoldenChanges] = []

    def of_tokens() -> list[Finding]:
        tokens.append(compare_tokens(tuned, base))
        report.figures["tokens"] = {
            "other": dict(tokens[0].other),
            "misplaced": tokens[0].misplaced,
            "hard_texts": list(tokens[0].hard),
            "added": len(tokens[0].added),
            "removed": len(tokens[0].removed),
        }
        return token_findings(tokens[0])

    def of_weights() -> list[Finding]:
        weights.append(compare_weights(tuned, base, tokens[0].shared))
        report.figures["weights"] = _weights(weights[0])
        rows = weights[0].rows
        return [*weight_findings(weights[0]), *(row_findings(rows) if rows else [])]

    def of_declarations() -> list[Finding]:
        differences = compare_declared(tuned, base)
        report.figures["declared"] = [asdict(one) for one in differences]
        return declared_findings(differences, base)

    def of_configs() -> list[Finding]:
        differences = compare_configs(tuned, base)
        report.figures["config"] = [asdict(one) for one in differences]
        has_moved = bool(moved) and max(one.most for one in moved) > ROUNDING
        return config_findings(differences, explains=has_moved and _changed(weights) == "nothing")

    def of_vectors() -> list[Finding]:
        if ran is None:
            return []
        running = run_base()
        beside.extend(measure_beside(ran.measured, running, sample))
        report.figures["data"] = [_scores(one) for one in beside]
        golden.extend(
            GoldenChanges.of(one.collection, of_base(running, one).similarities(), one.similarities())
            for one in ran.golden
        )
        moved.extend(compare_vectors(ran.hard, hard_vectors(Encoder(running)), beside))
        neighbours = compare_neighbours(beside)
        report.figures["vectors"] = [asdict(one) for one in moved]
        report.figures["neighbours"] = [asdict(one) for one in neighbours]
        return vector_findings(moved, neighbours, _changed(weights))

    def of_cut_offs() -> list[Finding]:
        found = [cut_off for one in beside if (cut_off := measure_cut_off(one)) is not None]
        report.figures["cut_off"] = [asdict(one) for one in found]
        return cut_off_findings(found)

    of_tokens_found = guarded("tokens_beside_the_base", of_tokens)

    report.findings += guarded("weights_beside_the_base", of_weights)
    report.findings += of_tokens_found
    report.findings += guarded("declarations_beside_the_base", of_declarations)
    report.findings += guarded("vectors_beside_the_base", of_vectors)
    of_the_network = guarded("config_beside_the_base", of_configs)
    if any(one.level == "problem" for one in of_the_network):
        # That no weight has changed is how it should be.
        report.findings = [one for one in report.findings if one.name != NOTHING.name]
    report.findings += of_the_network
    # The same vectors have the same scores and the same scale.
    if beside and not (moved and max(one.most for one in moved) <= ROUNDING):
        report.findings += guarded(
            "gains_over_the_base", lambda: gain_findings(beside, is_tuned=_changed(weights) != "nothing")
        )
        report.findings += guarded("scale_beside_the_base", of_cut_offs)
    report.figures["golden"] = [one.as_json() for one in golden]
    report.findings += [one.between("the base", "It").finding(GOLDEN) for one in golden]
    return report


def _changed(weights: Sequence[WeightChange]) -> Changed:
    if not weights:
        return "more"
    if weights[0].extent == "nothing":
        return "nothing"
    rows = weights[0].rows
    moved = [tensor for tensor in weights[0].tensors if tensor.status not in ("same", "rounded")]
    is_table = all(rows is not None and tensor.name == weights[0].table for tensor in moved)
    return "rows" if is_table else "more"


def _weights(change: WeightChange) -> Figures:
    return {
        "extent": change.extent,
        "compared": change.compared,
        "blocks": [
            {
                "name": block.name,
                "tensors": len(block.tensors),
                "tensors_moved": sum(tensor.status == "moved" for tensor in block.tensors),
                "compared": block.compared,
                "moved": block.moved,
                "relative": block.relative,
                "is_replaced": block.name in change.replaced,
            }
            for block in change.blocks
        ],
        "tensors": [_tensor(tensor) for tensor in change.tensors],
        "rows": None if change.rows is None else asdict(change.rows),
        "unread": list(change.unread),
    }


def _tensor(tensor: TensorChange) -> Figures:
    return {
        "name": tensor.name,
        "status": tensor.status,
        "shape": tensor.shape,
        "shape_before": tensor.before,
        "compared": tensor.compared,
        "moved": tensor.moved,
        "relative": tensor.relative,
        "cosine": tensor.cosine,
        "rounded_to": tensor.rounded_to,
    }


def _scores(one: BaseComparison) -> Figures:
    tuned, base = one.scores
    return {
        "name": one.name,
        "metric": one.tuned.metric,
        "is_given": one.is_given,
        "tuned": as_json(tuned),
        "base": as_json(base),
        "gain": as_json(tuned.minus(base)),
    }
