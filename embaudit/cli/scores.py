"""``embaudit scores``: compare downstream scores with audit measures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import click

from embaudit.cli.options import format_option, warehouse_option, warehouse_path
from embaudit.cli.query import print_result
from embaudit.corpora.scores import ReadScores, ScoredMeasure, read_scores
from embaudit.corpora.scores import correlate as correlate_rows
from embaudit.system.settings import Settings, Warehouse
from embaudit.warehouse.publish import ImportedScores, import_scores
from embaudit.warehouse.query import QueryResult, run_query
from embaudit.words.errors import UsageError, did_you_mean
from embaudit.words.sentences import listing, visible

SKIPPED_SHOWN = 5
# A share is at most 1, a percentage rarely below: a task with both was imported in two units.
MAX_SHARE = 1.0


@click.group()
def scores() -> None:
    """Import downstream scores (MTEB's or your own) and correlate them with audit measures."""


@scores.command("import")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FILE_OR_FOLDER…"
)
@click.option("--checkpoint", metavar="NAME", help="Checkpoint of the scores, if the files name none or another.")
@warehouse_option
def import_(files: tuple[Path, ...], checkpoint: str | None, warehouse: Warehouse | None) -> None:
    """Import scores from csv, tsv, json or jsonl files, or MTEB results.

    \b
    Rows need checkpoint, task and score; revision, split, subset and metric are optional.
    MTEB results are files as written by mteb, one per task, or a folder of them.
    Importing again replaces scores.
    """
    read = read_scores(files, checkpoint)
    path = warehouse_path(warehouse)
    _print_import(read, import_scores(path, Settings().lock_wait_seconds, read.scores))
    where = "" if warehouse is None else f" --warehouse {quote(str(warehouse))}"
    click.echo(f"Next:  embaudit scores list{where}   or   embaudit scores correlate{where}")


@scores.command("list")
@warehouse_option
@format_option
def list_(warehouse: Warehouse | None, form: str) -> None:
    """List the imported scores by checkpoint, with the audited checkpoint they belong to."""
    print_result(run_query(warehouse_path(warehouse), "scores"), form)


@scores.command()
@click.option(
    "--measure", type=click.Choice(["socm", "spread"]), help="Only mean SOCM, or only the spread of the pooled states."
)
@click.option("--corpus", metavar="NAME", help="Only this corpus, e.g. wikipedia.  [default: all]")
@click.option("--task", "tasks", multiple=True, metavar="NAME", help="Only this task. Repeatable.")
@click.option(
    "--average", is_flag=True, help="Only the average over tasks (those given with --task, or those that all have)."
)
@warehouse_option
@format_option
def correlate(
    measure: str | None,
    corpus: str | None,
    tasks: tuple[str, ...],
    average: bool,
    warehouse: Warehouse | None,
    form: str,
) -> None:
    """Correlate a measure with downstream scores (Spearman's ρ over checkpoints).

    \b
    p is two-sided: exact up to 9 checkpoints, Student's t from 10 on.
    It is not corrected for the number of rows.
    """
    path = warehouse_path(warehouse)
    rows = _select_rows(path, measure, corpus, tasks)
    found = correlate_rows(rows, only_average=average and bool(tasks))
    if average and not tasks:
        found = [one for one in found if one.tasks > 1]
        if not found:
            raise _no_common_task(rows)
    columns = ["measure", "corpus", "task", "checkpoints", "rho", "p", "p_method"]
    table = [
        (one.measure, one.corpus, one.task, it.n, it.rho, it.p, it.method) for one in found for it in (one.correlation,)
    ]
    print_result(QueryResult(columns, list(table)), form)
    if form == "table":
        _print_notes(path, rows, any(one.tasks > 1 for one in found))
    for line in _left_out(path, rows, corpus, tasks):
        click.echo(visible(line), err=form != "table")


def _print_import(read: ReadScores, done: ImportedScores) -> None:
    checkpoints = {one.checkpoint for one in read.scores}
    tasks = {one.task for one in read.scores}
    again = f", {read.repeated} of them repeated" if read.repeated else ""
    click.echo(
        f"Read {_count(len(read.scores) + read.repeated, 'score')}{again}, of {_count(len(checkpoints), 'checkpoint')} "
        f"on {_count(len(tasks), 'task')} from {_count(read.files, 'file')}: "
        f"{done.new:,} new, {done.replaced:,} replaced, {done.same:,} unchanged."
    )
    for one in read.skipped[:SKIPPED_SHOWN]:
        click.echo(visible(f"Skipped {one.origin}: {one.why}."))
    if len(read.skipped) > SKIPPED_SHOWN:
        click.echo(f"Skipped {len(read.skipped) - SKIPPED_SHOWN} more.")


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _select_rows(
    warehouse: Warehouse, measure: str | None, corpus: str | None, tasks: tuple[str, ...]
) -> list[ScoredMeasure]:
    """The selected scores with their measures.

    Raises:
        UsageError: if there are none, with the reason.
    """
    columns = ", ".join(ScoredMeasure._fields)
    rows = [
        ScoredMeasure(*row)
        for row in run_query(warehouse, f"SELECT {columns} FROM score_beside_measure ORDER BY ALL").rows
    ]
    if not rows:
        raise _no_common_checkpoint(warehouse)
    for name, given, known in (
        ("task", tasks, {row.task for row in rows}),
        ("corpus", (corpus,) if corpus else (), {row.corpus for row in rows}),
        ("measure", (measure,) if measure else (), {row.measure for row in rows}),
    ):
        for one in given:
            if one not in known:
                raise UsageError(
                    f"No checkpoint has both a score and a measure for the {name} {one}.",
                    next_step=did_you_mean(one, known) + f"Choose from: {listing(sorted(known))}.",
                )
    chosen = [
        row
        for row in rows
        if measure in (None, row.measure) and corpus in (None, row.corpus) and (not tasks or row.task in tasks)
    ]
    if not chosen:
        raise UsageError("No checkpoint has all of this.", next_step="See what there is: embaudit scores correlate")
    return chosen


def _no_common_checkpoint(warehouse: Warehouse) -> Exception:
    def names(sql: str) -> str:
        found = [str(name) for (name,) in run_query(warehouse, sql).rows]
        return ", ".join([*found[:3], "…"] if len(found) > 3 else found)

    scored = names("SELECT DISTINCT checkpoint FROM downstream_score ORDER BY 1")
    audited = names("SELECT DISTINCT source FROM latest_audit ORDER BY 1")
    if not scored:
        return UsageError(
            "The warehouse has no downstream scores.", next_step="Import some: embaudit scores import FILE"
        )
    if not audited:
        return UsageError(
            "The warehouse has no audits.", next_step=f"Audit the checkpoints that have scores: {scored}."
        )
    return UsageError(
        f"No checkpoint has both a score and an audit of SOCM or layers: there are scores for {scored}, audits of "
        f"{audited}.",
        next_step="Scores are matched to audits by hub id or by the last part of the name: "
        "embaudit scores import FILE --checkpoint NAME",
    )


def _no_common_task(rows: list[ScoredMeasure]) -> Exception:
    by_checkpoint: dict[str, set[str]] = {}
    for row in rows:
        by_checkpoint.setdefault(row.checkpoint_id, set()).add(row.task)
    fewest = min(by_checkpoint, key=lambda one: (len(by_checkpoint[one]), one))
    return UsageError(
        f"No two tasks have scores for all {len(by_checkpoint)} checkpoints; checkpoint {fewest} has "
        f"{_count(len(by_checkpoint[fewest]), 'task')}.",
        next_step="Name the tasks to compare the checkpoints that have all of them: --average --task A --task B",
    )


def _left_out(
    warehouse: Warehouse, rows: list[ScoredMeasure], corpus: str | None, tasks: tuple[str, ...]
) -> Iterator[str]:
    """A line per measure that names the scored checkpoints it leaves out, by reason."""
    scored: dict[str, list[dict[str, Any]]] = {}
    found = run_query(
        warehouse,
        "SELECT DISTINCT score.checkpoint, score.task, match.checkpoint_id, checkpoint.pooling, pooling_is_mean "
        "FROM downstream_score AS score "
        "LEFT JOIN checkpoint_match AS match ON match.name = score.checkpoint AND match.kind = 'scored' "
        "LEFT JOIN checkpoint USING (checkpoint_id) ORDER BY ALL",
    )
    for one in (dict(zip(found.columns, row, strict=True)) for row in found.rows):
        if not tasks or one["task"] in tasks:
            scored.setdefault(one["checkpoint"], []).append(one)
    for measure in sorted({row.measure for row in rows}):
        used = {row.checkpoint_id for row in rows if row.measure == measure}
        reasons: dict[str, list[str]] = {}
        for name, matches in scored.items():
            audited = [one for one in matches if one["checkpoint_id"] is not None]
            if any(one["checkpoint_id"] in used for one in audited):
                continue
            if not audited:
                reason = "not audited"
            elif measure == "socm" and not any(one["pooling_is_mean"] for one in audited):
                reason = f"{audited[0]['pooling']} pooling, which has no SOCM"
            else:
                reason = f"no {measure} of its own" + (f" on {corpus}" if corpus else "")
            reasons.setdefault(reason, []).append(name)
        if reasons:
            words = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
            yield f"Left out of {measure}, {sum(map(len, reasons.values()))} of {len(scored)} with scores: {words}."
    having: dict[str, set[str]] = {}
    for row in rows:
        having.setdefault(row.task, set()).add(row.checkpoint_id)
    everyone = {row.checkpoint_id for row in rows}
    names = {one["checkpoint_id"]: name for name, matches in scored.items() for one in matches}
    for task, own in sorted(having.items()):
        if own < everyone:
            yield f"Without a score on {task}: {', '.join(sorted(names.get(one, one) for one in everyone - own))}."


def _print_notes(warehouse: Warehouse, rows: list[ScoredMeasure], has_average: bool) -> None:
    """Print how to read the table, published values, and warnings."""
    click.echo("p is two-sided (exact: all pairings; t: Student's t) and not corrected for the number of rows.")
    if has_average:
        measures = {row.measure for row in rows}
        figures = run_query(
            warehouse,
            "SELECT measure, value, source FROM published_figure WHERE starts_with(measure, 'spearman_') ORDER BY ALL",
        )
        for name, value, source in figures.rows:
            if name.removeprefix("spearman_") in measures:
                click.echo(f"Published for {name.removeprefix('spearman_')}: ρ = {value:.3f} ({source}).")
    for task in sorted({row.task for row in rows}):
        of_task = [row.score for row in rows if row.task == task]
        if min(of_task) <= MAX_SHARE < max(of_task):
            click.echo(
                f"Warning: scores of {task} lie between {min(of_task):g} and {max(of_task):g}: some in percent, some "
                "not?"
            )
