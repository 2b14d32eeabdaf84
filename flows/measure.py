"""The sub-flow that runs one measure, where its shards are computed, and how long an audit will take.

Steps are Prefect tasks. ``EMBAUDIT_RUNNER`` and ``EMBAUDIT_WORKERS`` decide whether shards are computed in this
process, in several on this machine, or on a Dask cluster; docs/runners.md says what was tried, and why these were
chosen.

Before the measures start, each piece of work is divided by the rate of the precision that it runs in: where half
precision is clearly faster, the search for sticky tokens and their validation run in it, and everything else in the
audit's own precision or in float32.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

from prefect import Flow, flow

from embaudit.checkpoint.model import quiet_transformers
from embaudit.checkpoint.precision import operations_per_second
from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.measures import MEASURES, Measure
from embaudit.measures.listed import Profile
from embaudit.measures.measure import Precision, Readable, Work
from embaudit.measures.sticky import StickySettings
from embaudit.steps.corpora import some_texts
from embaudit.steps.elsewhere import is_elsewhere, lost_workers
from embaudit.steps.progress import shard_done
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus
from embaudit.steps.step import Step
from embaudit.steps.workers import end_with_command, interrupts_held, own_cluster, require_dask, require_workers
from embaudit.system.processors import processors
from embaudit.system.settings import Settings, warehouse_at
from embaudit.warehouse.publish import was_published
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.steps import in_a_run, run_step, say, submit_step

# For checks, publishing and the page.
FIXED_SECONDS = 20
# Texts of each corpus whose tokens are counted, and how much of a long one: the rest is counted in proportion.
COUNTED_TEXTS, COUNTED_CHARACTERS = 100, 10_000
# Measures that take less are not named.
NAMED_SECONDS = 5
# Before a measure that takes as long, the rest is estimated again, and said if it is so many times longer or shorter.
LONG_SECONDS = 60
WORTH_SAYING = 1.25


class HowLong:
    """How long an audit takes, said at its start; and again if this machine has become faster or slower since.

    What else runs here is not known at the start, and one look at it may fall on a busy second.

    Attributes:
        seconds: expected duration of each measure, in the order in which they run.
    """

    def __init__(self, plan: AuditPlan, readable: Readable) -> None:
        self._plan, self._readable = plan, readable
        self._work = work_of(plan.profile, plan.measures, readable)
        self._runs_in = precisions(plan, {one.runs_in for parts in self._work.values() for one in parts})
        self._has_just_looked = False
        self.seconds = self._expected()
        say(f"This takes about {_said(self.seconds)}, but cached work is skipped.")

    def before(self, measure: str) -> None:
        """Look again before a measure that takes long, and say how long the rest takes if that has changed."""
        has_just_looked, self._has_just_looked = self._has_just_looked, False
        if self.seconds[measure] < LONG_SECONDS or has_just_looked:
            return
        expected, now = self._left(measure), self._expected()
        ratio = sum(now[name] for name in expected) / sum(expected.values())
        if 1 / WORTH_SAYING <= ratio <= WORTH_SAYING:
            return
        self.seconds = now
        say(
            f"Now about {_said(self._left(measure))} left, not {rounded(sum(expected.values()) + FIXED_SECONDS)}: this "
            f"machine is {'slower' if ratio > 1 else 'faster'} than it was when the audit started."
        )

    def rest(self, measures: Collection[str]) -> str:
        """How long the rest takes when these measures are done, in words: as it looks now, if that is long."""

        def left() -> float:
            return sum(one for name, one in self.seconds.items() if name not in measures)

        if left() >= LONG_SECONDS:
            self.seconds, self._has_just_looked = self._expected(), True
        return rounded(left() + FIXED_SECONDS)

    def _left(self, measure: str) -> dict[str, float]:
        names = list(self.seconds)
        return {name: self.seconds[name] for name in names[names.index(measure) :]}

    def _expected(self) -> dict[str, float]:
        """Expected duration of each measure, at the speed at which this process now computes a layer."""
        spec, widths = self._plan.spec, self._plan.widths
        of_dtype = {
            dtype: operations_per_second(spec.device, dtype, widths) for dtype in sorted({*self._runs_in.values()})
        }
        rates = {precision: of_dtype[dtype] for precision, dtype in self._runs_in.items()}
        return {name: self._readable.seconds(parts, rates, processors()) for name, parts in self._work.items()}


def precisions(plan: AuditPlan, asked: Collection[Precision]) -> dict[Precision, str]:
    """The dtype that each of these is in this audit, on this machine."""
    found: dict[Precision, str] = {"audit": plan.spec.dtype, "float32": "float32"}
    if "scan" in asked:
        # With it come the libraries of a search, which not every audit makes.
        from embaudit.measures.sticky.steps.candidates import scan_precision

        # As the search will: what is measured for it here is staged, and found there.
        found["scan"] = scan_precision(plan.run({})).dtype
    return {precision: dtype for precision, dtype in found.items() if precision in asked}


def say_how_long(
    plan: AuditPlan, ingested: Mapping[str, StagedCorpus], audit_id: str, checkpoint: Mapping[str, Any]
) -> HowLong | None:
    """Say in one line how long the audit will take; None if it is already published or its layers are unknown.

    Args:
        checkpoint: the checkpoint's row in the table ``checkpoint``.
    """
    if checkpoint["layers"] is None or was_published(warehouse_at(plan.warehouse), audit_id):
        return None
    return HowLong(plan, readable_of(plan, ingested, checkpoint))


def _said(seconds: Mapping[str, float]) -> str:
    """The whole with what follows the measures, and in brackets those that take most of it."""
    parts = ", ".join(
        f"{name} {rounded(one)}"
        for name, one in sorted(seconds.items(), key=lambda part: -part[1])
        if one > NAMED_SECONDS
    )
    return f"{rounded(sum(seconds.values()) + FIXED_SECONDS)}{f' ({parts})' if parts else ''}"


def work_of(profile: Profile, measures: Collection[str], readable: Readable) -> dict[str, list[Work]]:
    """The work of each measure, in the order in which they run; what several share is the first one's."""
    shared: set[Work] = set()
    found: dict[str, list[Work]] = {}
    for name in (name for name in MEASURES if name in measures):
        settings = profile.of(MEASURES[name].settings)
        found[name] = [one for one in settings.work(readable) if one not in shared]
        shared |= {one for one in found[name] if one.is_shared}
    return found


def readable_of(plan: AuditPlan, ingested: Mapping[str, StagedCorpus], checkpoint: Mapping[str, Any]) -> Readable:
    """The sizes that determine the work."""
    vocabulary = checkpoint["vocabulary_size"]
    return Readable(
        layers=checkpoint["layers"],
        heads=checkpoint["layers"] * (checkpoint["heads"] or 0),
        hidden_size=checkpoint["hidden_size"],
        vocabulary=vocabulary,
        searched=min(plan.profile.of(StickySettings).limit_tokens or vocabulary, vocabulary),
        max_length=checkpoint["max_length"],
        rows={name: corpus.rows for name, corpus in ingested.items()},
        tokens=mean_tokens(plan.spec, ingested, checkpoint["prompt"] or ""),
    )


def mean_tokens(spec: CheckpointSpec, corpora: Mapping[str, StagedCorpus], prompt: str) -> dict[str, float]:
    """Mean number of tokens of a corpus's texts as the checkpoint reads them, prompt and special tokens included."""
    lone = load_tokenizer_alone(
        spec.reference, allow_pickle=spec.allow_pickle, trust_remote_code=spec.trust_remote_code
    )

    def count(texts: Sequence[str]) -> int:
        with quiet_transformers():
            encoded = lone.tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
            return sum(map(len, encoded["input_ids"]))

    around = lone.around + count([prompt])
    means = {}
    for name, corpus in corpora.items():
        texts = some_texts(corpus, COUNTED_TEXTS)
        counted = [text[:COUNTED_CHARACTERS] for text in texts]
        whole, seen = sum(map(len, texts)), sum(map(len, counted))
        means[name] = around + (count(counted) * whole / seen / len(texts) if seen else 0.0)
    return means


def rounded(seconds: float) -> str:
    """A duration in round numbers: 40 s, 2.5 min, 6 min, 3 h; a sixth off at most, which is less than is known."""
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            count = seconds / size
            return f"{round(2 * count) / 2 if count < 5 else round(count):g} {unit}"
    return f"{max(10 * round(seconds / 10), 10)} s"


AnyFlow = TypeVar("AnyFlow", bound=Flow[..., Any])
STAGED_IS_KEPT = "Every finished shard is staged, and the published tables are as they were."


def pooled(subflow: AnyFlow) -> AnyFlow:
    """The sub-flow with the task runner from the settings; unchanged if this process computes the shards.

    Raises:
        UsageError: if the runner is not installed.
    """
    if not is_elsewhere():
        return subflow
    settings = Settings()
    runner: Any = _dask(settings) if settings.runner == "dask" else _processes(settings.workers)
    return cast(AnyFlow, subflow.with_options(task_runner=runner))


@contextmanager
def computing_elsewhere(what: str) -> Iterator[None]:
    """Report lost workers in one paragraph, and end at once on an interrupt.

    Raises:
        MeasureError: if a worker died and its shard could not be given to another, or the cluster was lost.
    """
    try:
        yield
    except KeyboardInterrupt:
        # Staged files are complete or absent, so there is nothing that a worker must finish.
        if Settings().runner == "process":
            for child in multiprocessing.active_children():
                child.kill()
        raise
    except Exception as error:
        lost = lost_workers(error, what, STAGED_IS_KEPT)
        if lost is None:
            raise
        raise lost from error


def on_one_server() -> AbstractContextManager[object]:
    """While submitting shards: if no server is configured, let workers report to this command's temporary one.

    Otherwise each would start its own, which takes 220 MB and keeps running if the worker is killed. Workers of a
    cluster that was already running still do, since their machines may not be able to reach the temporary server.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value() or Settings().runner_address:
        return nullcontext()
    return temporary_settings({PREFECT_API_URL: str(get_client(sync_client=True).api_url)})


def _processes(workers: int) -> Any:
    from prefect.task_runners import ProcessPoolTaskRunner

    return ProcessPoolTaskRunner(max_workers=workers, initializer=end_with_command)


def _dask(settings: Settings) -> Any:
    runner = require_dask("prefect_dask.task_runners").DaskTaskRunner
    if settings.runner_address:
        require_workers(settings.runner_address)
        return runner(address=settings.runner_address)
    return runner(cluster_kwargs=own_cluster(settings.workers))


P = ParamSpec("P")


class PrefectTasks:
    """The ``Engine`` of a run within a flow."""

    def call(self, step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
        return run_step(step, staging, *args, **kwargs)

    def call_shards(
        self, step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any
    ) -> list[Staged]:
        """If the settings say so, the flow's task runner takes the calls (``pooled``)."""
        if not is_elsewhere() or len(shards) < 2:
            return [part for shard in shards for part in run_step(step, staging, **shared, **shard)]
        staged: list[Staged] = []
        with computing_elsewhere(step.name):
            with on_one_server(), interrupts_held():
                futures = [submit_step(step, staging, **shared, **shard) for shard in shards]
            for future in futures:
                staged += future.result()
                shard_done(f"{step.name}, shards", len(shards))
        return staged


def run_measure(
    measure: Measure, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]
) -> list[Staged]:
    """Run a measure as a flow of its name; returns what it staged.

    Args:
        earlier: what the measures before it staged.
    """
    needed = earlier if plan.profile.of(measure.settings).builds_on else []
    if not in_a_run():
        return measure.parts().measure(plan.run(ingested, needed))
    named = _named(measure.name)
    run = pooled(named) if measure.is_sharded else named
    staged: list[Staged] = run(measure.name, plan, ingested, needed)
    return staged


@cache
def _named(name: str) -> Flow[..., list[Staged]]:
    """Made once: Prefect derives the schema of all parameters anew, which takes as long as some measures."""
    return _measure.with_options(name=name)


@flow(flow_run_name="{name} of {plan.source}", persist_result=False)
def _measure(name: str, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> list[Staged]:
    return MEASURES[name].parts().measure(plan.run(ingested, earlier, PrefectTasks()))
