"""Runs the suites on staged files, shard by shard, and says which rows fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from embaudit.expectations.remembered import check_path, recall, remember
from embaudit.expectations.rules import TOLERANCE
from embaudit.expectations.suites import suite_of
from embaudit.socm import TRACE_BOUND
from embaudit.sticky.scores import severity
from embaudit.tables.watch import DONE
from embaudit.warehouse.publish import ExpectationRow, StagedTable
from embaudit.warehouse.stage import opened
from embaudit.warehouse.tables import TABLES

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from great_expectations.datasource.fluent import PandasDatasource

EXAMPLES_KEPT = 10
# Similarities after insertion are float32: where all similarities are alike, their spread keeps few digits.
SPREAD_TOLERANCE = 1e-3
# The ``shard`` of an expectation on all of a table's files together.
ALL_SHARDS = -1
PAIR_KEYS = TABLES["socm_pair"].keys
# Tables whose distances are bounded by the traces of ``socm_text``.
BOUNDED_BY_TRACES = ("socm_pair", "socm_listed_pair")
# The staged columns that ``derived`` reads.
DERIVED_FROM = {
    "corpus": ("read", "kept", "duplicate", "blank", "broken", "undecodable"),
    "sticky_score": ("pull_rank", "slope_rank"),
    "sticky_validation": (
        *("protocol", "role", "value", "threshold", "verdict", "severity", "loss"),
        *("slope", "compression", "q_value"),
    ),
    "sticky_summary": ("pilot_shortlisted", "pilot_missed", "miss_rate", "miss_low", "miss_high"),
    "sticky_shift": ("token_id", "position", "before"),
    "sticky_enrichment": (
        *("selected_with", "selected", "scanned_with", "scanned"),
        *("share_selected", "share_scanned", "fold"),
    ),
    "sticky_reference": ("score_rank", "is_shortlisted", "value", "threshold", "verdict"),
    "socm_text": ("trace_sigma", "exceeds_trace_bound", "is_undefined"),
    "socm_pair": ("corpus", "first", "second", "d_mu", "d_sigma", "socm"),
    "socm_listed_pair": ("corpus", "first", "second", "d_mu", "d_sigma", "socm"),
    "socm_tightness": ("w2_squared",),
    "layer_text": ("normalised_spread", "c", "contraction", "r"),
    "length_bin": ("texts", "cosine_mean"),
    "length_rise": ("rise", "first_cosine", "last_cosine"),
    "length_sigma": ("frobenius",),
    "watched_revision": ("status", "audit_id", "checkpoint_id", "first_seen", "last_seen"),
    "regression": (
        *("audit_id", "predecessor_audit_id", "value", "predecessor_value", "delta"),
        *("worse_when", "tolerance", "is_worse"),
    ),
    "tempscale": ("arm", "tau", "difference", "low", "high"),
    "gate_result": ("value", "lowest", "highest", "outcome", "trips"),
    "tempscale_choice": ("recommendation", "tau", "score_before", "score_after", "difference", "low"),
}


def check_tables(
    staged: Sequence[StagedTable], planned_rows: Mapping[str, int], remembered_in: str | None = None
) -> list[ExpectationRow]:
    """Check every staged table, one shard in memory at a time.

    Args:
        planned_rows: rows that the plan demands of a table over all its shards; a table that is not named may
            have any number from one up. Names that are no published table are ignored.
        remembered_in: the staging where it is remembered which files passed; None checks everything.

    Raises:
        StorageError: if a staged file is missing or broken.
    """
    traces = cache(lambda: _traces(staged))
    source = cache(frames_source)
    texts = [path for table in staged if table.table == "socm_text" for path in table.paths]
    results: list[ExpectationRow] = []
    for table in staged:
        planned = planned_rows.get(table.table)
        path = None
        if remembered_in is not None:
            beside = texts if table.table in BOUNDED_BY_TRACES else []
            path = check_path(remembered_in, table.table, table.paths, beside, planned)
        rows = recall(path) if path else None
        if rows is None:
            rows = _check_table(table, planned, traces() if table.table in BOUNDED_BY_TRACES else {}, source())
            if path:
                remember(path, rows)
        results += rows
    present = {table.table for table in staged}
    for name, planned in planned_rows.items():
        if name in TABLES and name not in present and planned > 0:
            results.append(_row_count(name, 0, planned))
    return results


def _check_table(
    table: StagedTable, planned: int | None, traces: Mapping[str, pd.Series], source: PandasDatasource
) -> list[ExpectationRow]:
    results: list[ExpectationRow] = []
    rows = 0
    is_sharded = len(table.paths) > 1
    seen = PairsSeen(traces)
    for shard, path in enumerate(table.paths):
        frame = _read_frame(table.table, path)
        rows += len(frame)
        checked = derived(table.table, frame, traces)
        results += check_frame(table.table, checked, None if is_sharded else planned, shard, source)
        if TABLES[table.table].is_bulk and is_sharded:
            seen.add(frame)
        del frame, checked
    if is_sharded and planned is not None:
        # Shards are checked one by one; that none is missing shows in the sum, that none is doubled in the keys.
        results.append(_row_count(table.table, rows, planned))
    if TABLES[table.table].is_bulk and is_sharded:
        results.append(seen.as_row(table.table))
    return results


def check_frame(
    table: str, frame: pd.DataFrame, planned_rows: int | None, shard: int = 0, source: PandasDatasource | None = None
) -> list[ExpectationRow]:
    """Run a table's suite on one frame, whose index must be unique.

    Args:
        source: what ``frames_source`` made, to check several frames with one.
    """
    import great_expectations as gx

    source = source or frames_source()
    if table in source.get_asset_names():
        whole = source.get_asset(table).get_batch_definition("shard")
    else:
        whole = source.add_dataframe_asset(table).add_batch_definition_whole_dataframe("shard")
    batch = whole.get_batch(batch_parameters={"dataframe": frame})
    suite = gx.ExpectationSuite(table, expectations=suite_of(table, TABLES[table].keys, planned_rows))
    results = {_identity(result): result for result in batch.validate(suite, result_format="BASIC").results}
    failed = [result.expectation_config.to_domain_obj() for result in results.values() if not result.success]
    if failed:
        # Which rows fail is asked for where some do: to look for them everywhere takes 1.6 times as long. They come
        # back by their index, and their keys are looked up here: asked for key columns, Great Expectations 1.24 takes
        # 45 s for one expectation that fails in all of 500 000 rows.
        with_rows = {"result_format": "SUMMARY", "partial_unexpected_count": EXAMPLES_KEPT}
        again = batch.validate(gx.ExpectationSuite(table, expectations=failed), result_format=with_rows)
        results |= {_identity(result): result for result in again.results}
    return [_as_row(table, shard, result, frame) for result in results.values()]


def _identity(result: Any) -> tuple[str, str]:
    config = result.expectation_config
    return config.type, str(sorted(config.kwargs.items()))


def frames_source() -> PandasDatasource:
    """What Great Expectations needs to read frames. It keeps the last frame of each table for as long as it lives."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context.data_sources.add_pandas("staged")


def derived(table: str, frame: pd.DataFrame, traces: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The frame with the columns that some expectations compare: bounds, and statements that must be true.

    Where a column that they are made of is missing the frame comes back as it is, and they fail for want of it.
    """
    if not set(DERIVED_FROM.get(table, ())) <= set(frame.columns):
        return frame
    if table == "corpus":
        return frame.assign(counts_add_up=frame["read"] == frame[list(DERIVED_FROM["corpus"][1:])].sum(axis=1))
    if table == "sticky_score":
        return frame.assign(ranks_are_complete=_is_rank(frame["pull_rank"]) & _is_rank(frame["slope_rank"]))
    if table == "sticky_validation":
        return frame.assign(
            verdict_agrees_with_threshold=frame["verdict"].fillna("") == _expected_verdict(frame),
            severity_agrees_with_loss=frame["severity"] == frame["loss"].map(severity),
            slope_within_compression=_is_within_compression(frame),
        )
    if table == "sticky_summary":
        return frame.assign(miss_rate_agrees_with_counts=_is_miss_rate(frame))
    if table == "sticky_shift":
        return frame.assign(pairs_are_the_same=_has_the_same_pairs(frame))
    if table == "sticky_enrichment":
        return frame.assign(shares_agree_with_counts=_has_shares(frame))
    if table == "sticky_reference":
        return frame.assign(
            ranks_are_complete=_is_rank(frame["score_rank"]),
            shortlist_has_values=frame["is_shortlisted"] == frame["value"].notna(),
            verdict_agrees_with_threshold=frame["verdict"].fillna("") == _expected_reference_verdict(frame),
        )
    if table == "layer_text":
        bound = frame["c"] * (1 + frame["contraction"] ** 0.5) ** 2 * frame["r"] * (1 + TOLERANCE)
        # Undefined where one of the four is.
        return frame.assign(theorem_1_holds=bound.isna() | ~(frame["normalised_spread"] > bound))
    if table == "length_bin":
        return frame.assign(mean_needs_two_texts=frame["cosine_mean"].notna() == (frame["texts"] > 1))
    if table == "length_rise":
        rise = (frame["last_cosine"] - frame["first_cosine"]).astype(float)
        return frame.assign(
            rise_is_of_its_ends=(rise.isna() & frame["rise"].isna()) | ((frame["rise"] - rise).abs() <= TOLERANCE)
        )
    if table == "length_sigma":
        # Float32 weights: the two norms are sums of different rounding.
        return frame.assign(frobenius_and_tolerance=frame["frobenius"] * (1 + SPREAD_TOLERANCE) + TOLERANCE)
    if table == "watched_revision":
        has_audit = frame["audit_id"].notna() & frame["checkpoint_id"].notna()
        return frame.assign(
            what_is_done_has_its_audit=frame["status"].isin(DONE) == has_audit,
            times_are_in_order=frame["first_seen"] <= frame["last_seen"],
        )
    if table == "regression":
        return frame.assign(
            delta_is_of_its_values=(frame["delta"] - (frame["value"] - frame["predecessor_value"])).abs() <= TOLERANCE,
            worse_is_beyond_tolerance=frame["is_worse"] == _is_worse(frame),
            audits_are_two=frame["audit_id"] != frame["predecessor_audit_id"],
        )
    if table == "tempscale":
        return frame.assign(only_other_arms_have_differences=_has_differences_elsewhere(frame))
    if table == "tempscale_choice":
        return frame.assign(
            recommendation_agrees_with_interval=_recommends_what_helps(frame),
            difference_is_of_the_scores=_is_difference(frame),
        )
    if table == "gate_result":
        has_failed = frame["outcome"] != "passed"
        return frame.assign(
            outcome_agrees_with_limits=_outcome_of_limits(frame) == frame["outcome"],
            # Only a missing figure may be let off.
            what_trips_has_failed=(frame["trips"] == has_failed) | (frame["outcome"] == "missing"),
        )
    if table == "socm_text":
        return frame.assign(
            undefined_has_no_trace=frame["is_undefined"].astype(bool) == frame["trace_sigma"].isna(),
            flag_agrees_with_trace=_flags_the_bound(frame),
        )
    if table == "socm_tightness":
        tolerance = TOLERANCE * frame["w2_squared"].clip(lower=1)
        return frame.assign(w2_squared_and_tolerance=frame["w2_squared"] + tolerance)
    if table in BOUNDED_BY_TRACES:
        return _with_bounds(frame, traces)
    return frame


class PairsSeen:
    """Which pairs of texts the shards of ``socm_pair`` brought so far: a bit map, since twelve million keys are
    too many to hold."""

    def __init__(self, traces: Mapping[str, pd.Series]) -> None:
        self._traces = traces
        self._seen: dict[str, np.ndarray] = {}
        self._repeated = 0
        self._examples: list[dict[str, Any]] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Count a shard's pairs; rows without a key, or outside the corpus, are other expectations' business."""
        import numpy as np

        if not set(PAIR_KEYS) <= set(frame.columns):
            return
        for corpus, trace in self._traces.items():
            own = frame.loc[(frame["corpus"] == corpus).to_numpy(), ["first", "second"]].dropna()
            if own.empty:  # the texts of a list of pairs may be too many for a map
                continue
            size = int(trace.index.max()) + 1
            own = own[own["first"].between(0, size - 1) & own["second"].between(0, size - 1)]
            seen = self._seen.setdefault(corpus, np.zeros(size * size, dtype=bool))
            pairs = own["first"].to_numpy(np.int64) * size + own["second"].to_numpy(np.int64)
            repeated = seen[pairs]
            self._repeated += int(repeated.sum())
            for first, second in own[repeated].head(EXAMPLES_KEPT - len(self._examples)).to_numpy().tolist():
                self._examples.append({"corpus": corpus, "first": first, "second": second})
            seen[pairs] = True

    def as_row(self, table: str) -> ExpectationRow:
        """The expectation that no pair came twice, over all shards."""
        return ExpectationRow(
            table_name=table,
            shard=ALL_SHARDS,
            expectation="expect_compound_columns_to_be_unique",
            column_name=", ".join(PAIR_KEYS),
            kwargs={"column_list": list(PAIR_KEYS)},
            severity="critical",
            success=self._repeated == 0,
            raised_exception=False,
            unexpected_count=self._repeated,
            examples=self._examples,
        )


def _is_rank(ranks: pd.Series) -> pd.Series:
    """True where a rank is one of 1..n and nobody else's; all true means that they are complete."""
    return ranks.between(1, len(ranks)) & ~ranks.duplicated(keep=False)


def _expected_verdict(frame: pd.DataFrame) -> np.ndarray:
    import numpy as np

    # The definition flags what lies above the threshold (pull), retention what lies below it (slope).
    is_beyond = np.where(
        frame["protocol"] == "definition",
        frame["value"] > frame["threshold"],
        frame["value"] < frame["threshold"],
    )
    return np.select(
        # Every candidate of a protocol's own shortlist has a q-value.
        [frame["role"] == "control", frame["threshold"].isna(), frame["q_value"].isna(), is_beyond],
        ["", "no_threshold", "not_shortlisted", "sticky"],
        "not_sticky",
    )


def _expected_reference_verdict(frame: pd.DataFrame) -> np.ndarray:
    import numpy as np

    return np.select(
        [frame["value"].isna(), frame["threshold"].isna(), frame["value"] > frame["threshold"]],
        ["", "no_threshold", "sticky"],
        "not_sticky",
    )


def _is_within_compression(frame: pd.DataFrame) -> pd.Series:
    """The slope is the correlation times SD after / SD before: no larger than the compression, up to float32."""
    compression = frame["compression"].astype(float)
    return compression.isna() | (frame["slope"].abs() <= compression * (1 + SPREAD_TOLERANCE) + TOLERANCE)


def _is_miss_rate(frame: pd.DataFrame) -> pd.Series:
    """Missed / shortlisted of the pilot with its interval; all null where nothing is shortlisted, or no pilot was."""
    rate = frame["pilot_missed"].astype(float) / frame["pilot_shortlisted"].astype(float).replace(0, float("nan"))
    given = frame[["miss_rate", "miss_low", "miss_high"]].astype(float)
    is_undefined = given.isna().all(axis=1) & rate.isna()
    return is_undefined | (given.notna().all(axis=1) & ((given["miss_rate"] - rate).abs() <= TOLERANCE))


def _has_the_same_pairs(frame: pd.DataFrame) -> pd.Series:
    """One fixed set of pairs: each is there for every token, with one similarity before."""
    before = frame.groupby("position")["before"]
    return (before.transform("nunique") == 1) & (before.transform("size") == frame["token_id"].nunique())


def _has_shares(frame: pd.DataFrame) -> pd.Series:
    """Shares and fold are the ratios of the counts; the rows about numbers have none of them."""
    selected = frame["selected_with"] / frame["selected"]
    scanned = frame["scanned_with"] / frame["scanned"]
    given = frame[["share_selected", "share_scanned", "fold"]].astype(float)
    is_ratio = (given["share_selected"] - selected).abs() <= TOLERANCE
    is_ratio &= (given["share_scanned"] - scanned).abs() <= TOLERANCE
    is_ratio &= (given["fold"] * scanned - selected).abs() <= TOLERANCE
    return is_ratio | given.isna().all(axis=1)


def _has_differences_elsewhere(frame: pd.DataFrame) -> pd.Series:
    """The checkpoint as it is (``none``, and nothing else, unless a temperature of 1) differs from nothing."""
    is_untouched = frame["arm"] == "none"
    return (~is_untouched | (frame["tau"] == 1)) & (
        ~is_untouched | frame[["difference", "low", "high"]].isna().all(axis=1)
    )


def _is_worse(frame: pd.DataFrame) -> pd.Series:
    """Beyond the tolerance, in the direction that is worse; a figure without one is not worse."""
    delta, tolerance = frame["delta"].astype(float), frame["tolerance"].astype(float)
    is_higher = (frame["worse_when"] == "higher") & (delta > tolerance)
    return is_higher | ((frame["worse_when"] == "lower") & (-delta > tolerance))


def _recommends_what_helps(frame: pd.DataFrame) -> pd.Series:
    """Yes where the interval lies above 0, and nowhere else; no τ, no temperature to be had or to choose."""
    low, tau = frame["low"].astype(float), frame["tau"].astype(float)
    is_above = (low > 0) & tau.notna() & (tau != 1)
    return ((frame["recommendation"] == "yes") == is_above) & ((frame["recommendation"] != "unsupported") | tau.isna())


def _is_difference(frame: pd.DataFrame) -> pd.Series:
    difference = frame["difference"].astype(float)
    scores = frame["score_after"].astype(float) - frame["score_before"].astype(float)
    return difference.isna() | ((difference - scores).abs() <= TOLERANCE)


def _outcome_of_limits(frame: pd.DataFrame) -> np.ndarray:
    """Missing where there is no value, or no figure of the baseline to make a limit of; tripped beyond a limit."""
    import numpy as np

    value, lowest, highest = (frame[name].astype(float) for name in ("value", "lowest", "highest"))
    # A change may be beyond its limit by the rounding of its subtraction.
    slack = TOLERANCE**2 * np.fmax(value.abs(), np.fmax(lowest.abs().fillna(0), highest.abs().fillna(0)))
    is_missing = value.isna() | (lowest.isna() & highest.isna())
    return np.select(
        [is_missing, (value < lowest - slack) | (value > highest + slack)], ["missing", "tripped"], "passed"
    )


def _flags_the_bound(frame: pd.DataFrame) -> pd.Series:
    """tr Σ > 2 is flagged, nothing else is; no trace, no flag."""
    flag = frame["exceeds_trace_bound"]
    return (flag.isna() & frame["trace_sigma"].isna()) | (flag == (frame["trace_sigma"] > TRACE_BOUND)).fillna(False)


def _with_bounds(frame: pd.DataFrame, traces: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The bounds of d_Σ from its two texts' traces; null where a text has none, which is a failure of its own."""
    import numpy as np

    first, second = (np.full(len(frame), np.nan) for _ in range(2))
    for corpus, trace in traces.items():
        rows = (frame["corpus"] == corpus).to_numpy()
        first[rows] = trace.reindex(frame["first"].to_numpy()[rows]).to_numpy()
        second[rows] = trace.reindex(frame["second"].to_numpy()[rows]).to_numpy()
    # Rounding grows with the traces, which are in the thousands where a text's mean is near zero.
    tolerance = TOLERANCE * np.fmax(1.0, first + second)
    product = (1 - frame["d_mu"]) * frame["d_sigma"]
    return frame.assign(
        d_sigma_lower_bound=np.square(np.sqrt(first) - np.sqrt(second)) / 4 - tolerance,
        d_sigma_upper_bound=(first + second) / 4 + tolerance,
        d_sigma_and_tolerance=frame["d_sigma"] + tolerance,
        socm_is_product=(frame["socm"] - product).abs() <= tolerance,
    )


def _read_frame(table: str, path: str) -> pd.DataFrame:
    import pyarrow.parquet as pq

    with opened(path) as source:
        # A bulk table's corpus is one name half a million times: a category takes a byte a row.
        return pq.read_table(
            source,
            partitioning=None,
            read_dictionary=["corpus"] if TABLES[table].is_bulk else None,
            # A flipped bit in a number is a valid number: only the checksum tells.
            page_checksum_verification=True,
        ).to_pandas()


def _traces(staged: Sequence[StagedTable]) -> dict[str, pd.Series]:
    """tr Σ of each text by position, for each corpus: the bounds of d_Σ hang on it."""
    import pandas as pd

    frames = []
    for table in staged:
        if table.table == "socm_text":
            for path in table.paths:
                frames.append(_read_frame(table.table, path))
    needed = ["corpus", "position", "trace_sigma"]
    # What is null or doubled here fails the table's own suite.
    usable = [frame[needed].dropna() for frame in frames if set(needed) <= set(frame.columns)]
    if not usable:
        return {}
    texts = pd.concat(usable).drop_duplicates(["corpus", "position"])
    return {str(corpus): rows.set_index("position")["trace_sigma"] for corpus, rows in texts.groupby("corpus")}


def _row_count(table: str, rows: int, planned: int) -> ExpectationRow:
    return ExpectationRow(
        table_name=table,
        shard=ALL_SHARDS,
        expectation="expect_table_row_count_to_equal",
        column_name="",
        kwargs={"value": planned},
        severity="critical",
        success=rows == planned,
        raised_exception=False,
        observed=str(rows),
    )


def _as_row(table: str, shard: int, result: Any, frame: pd.DataFrame) -> ExpectationRow:
    config = result.expectation_config
    kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
    columns = _columns_of(kwargs)
    raised = result.exception_info or {}
    # One exception is a flat record; several come keyed by metric.
    records = [raised] if "raised_exception" in raised else list(raised.values())
    messages = [str(record["exception_message"]) for record in records if record.get("raised_exception")]
    observed = result.result.get("observed_value")
    return ExpectationRow(
        table_name=table,
        shard=shard,
        expectation=config.type,
        column_name=", ".join(columns),
        kwargs=kwargs,
        severity=str(getattr(config.severity, "value", config.severity)),
        success=bool(result.success),
        raised_exception=bool(messages),
        observed=messages[0] if messages else (None if observed is None else str(observed)),
        unexpected_count=result.result.get("unexpected_count"),
        examples=_examples(
            frame,
            result.result.get("partial_unexpected_index_list") or [],
            list(dict.fromkeys((*TABLES[table].keys, *columns))),
        ),
    )


def _columns_of(kwargs: Mapping[str, Any]) -> list[str]:
    """The columns that an expectation is about."""
    named = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
    return [*named, *kwargs.get("column_list", [])]


def _examples(frame: pd.DataFrame, index: Sequence[Any], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Keys of the failing rows, and the values that fail; null where a value is missing."""
    if not index:
        return []
    rows = frame.loc[list(index[:EXAMPLES_KEPT]), [name for name in columns if name in frame.columns]]
    return list(rows.astype(object).where(rows.notna(), None).to_dict("records"))
