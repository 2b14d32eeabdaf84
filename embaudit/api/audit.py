"""``embaudit.audit``: audit a checkpoint, or a model in memory, from Python.

Such a model is saved as a checkpoint folder: audits identify checkpoints by the content of their files. A notebook
shows a line per measure, and below it what is being computed; elsewhere, progress goes to a log.

A trainer callback that audits checkpoints during training.
"""

from __future__ import annotations

import logging
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np
import torch
from prefect.events.worker import EventsWorker
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from embaudit.api.reading import Audit
from embaudit.api.run import refuse_early, run_audit
from embaudit.checkpoint import load_checkpoint, resolve
from embaudit.checkpoint.agreement import require_same
from embaudit.checkpoint.load import describe
from embaudit.checkpoint.prompts import AS_DECLARED
from embaudit.questions.audit import AuditRequest
from embaudit.steps.progress import NoDisplay, is_shown, shown_on
from embaudit.system.files import move_into_place, temporary_sibling
from embaudit.system.settings import Settings, warehouse_at
from embaudit.words.errors import DoNotServe, EmbauditError, StorageError, UsageError
from embaudit_flows.server.settings import defaults_for_call
from embaudit_flows.server.temporary import expected_failure

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def save_model(model: Any, request: AuditRequest) -> Path:
    """Write a loaded ``SentenceTransformer`` to ``EMBAUDIT_HOME/models/CHECKPOINT_ID`` unless it is already there.

    It stays there, like staged files, for ``embaudit token`` and repeated audits. It can be deleted while no audit is
    running; the same model is written to the same place again.

    Args:
        request: how it will be loaded; a different pooling makes a different checkpoint.

    Raises:
        UsageError: if the model cannot be saved in sentence-transformers format.
        CheckpointError: if the saved model cannot be audited, or gives other vectors than the one in memory.
        StorageError: if the folder cannot be written.
    """
    if not (hasattr(model, "save_pretrained") and hasattr(model, "encode")):
        raise UsageError(
            f"A checkpoint is a name, a folder or a loaded SentenceTransformer, not a {type(model).__name__}.",
            next_step="Save the model in sentence-transformers format and audit that folder.",
        )
    models = (Settings().home / "models").expanduser().absolute()
    try:
        with temporary_sibling(models / "model") as folder:
            model.save_pretrained(str(folder), create_model_card=False)
            _, identity = describe(resolve(str(folder)), request.load_options)
            place = models / identity.checkpoint_id
            if not place.is_dir():
                move_into_place(folder, place)
    except OSError as error:
        raise StorageError(
            f"Cannot write the model to {models}: {error}.",
            kept="Staged and published results are unchanged.",
            next_step="Free some space, or set EMBAUDIT_HOME to another folder.",
        ) from error
    options = request.load_options
    if (options.pooling, options.max_length, options.prompts) == (None, None, AS_DECLARED):
        # The audit loads the same: the weights stay in memory for it.
        require_same(model, load_checkpoint(str(place), options))
    return place


SECONDS_BETWEEN_UPDATES = 0.5
LOGGER = logging.getLogger("embaudit")


class NotebookDisplay:
    """Lines of a cell's output; a carriage return starts the last one anew, in every kind of notebook."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._done: dict[tuple[str, int], int] = {}
        self._shown, self._last = "", 0.0

    def advance(self, label: str, done: int, total: int) -> None:
        """Show a step's share, not more often than a person can read it."""
        # Stages of a search may have one name.
        bar = (label, total)
        before = self._done.get(bar, 0)
        self._done[bar] = done if before >= total else before + done
        if time.monotonic() - self._last > SECONDS_BETWEEN_UPDATES:
            self._last = time.monotonic()
            self._write(f"{label}: {min(self._done[bar] / max(total, 1), 1):.0%}")

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Show a line that stays, whatever its level."""
        self._write(line)
        self._shown = ""
        self._output.write("\n")

    def measured(self, what: str, seconds: float) -> None:
        """Show that a measure is done."""
        self.say(f"{what}: {seconds:,.0f} s")

    def clear(self) -> None:
        """Remove the last line, which is about nothing any more."""
        self._write("")

    def _write(self, line: str) -> None:
        # Spaces over what was longer.
        self._output.write(f"\r{line}{' ' * (len(self._shown) - len(line))}" + ("\r" if not line else ""))
        self._output.flush()
        self._shown = line


class ProgramLog(NoDisplay):
    """What a program is told, whose output is its own: lines of the logger ``embaudit``, and warnings as Python's."""

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Log a line. A warning is seen where no logging is set up, too."""
        if level >= logging.WARNING:
            warnings.warn(line, stacklevel=2)
        else:
            LOGGER.info(line)

    def measured(self, what: str, seconds: float) -> None:
        """Log that a measure is done."""
        LOGGER.info("%s: %.0f s", what, seconds)


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    return "ipykernel" in sys.modules


@contextmanager
def shown_to_caller() -> Iterator[None]:
    """Show progress in a notebook, and write it to the log of any other program, unless something shows it already."""
    if not is_notebook():
        with nullcontext() if is_shown() else shown_on(ProgramLog()):
            yield
        return
    display = NotebookDisplay(sys.stdout)
    try:
        with shown_on(display):
            yield
    finally:
        display.clear()


def audit(
    checkpoint: str | Path | SentenceTransformer,
    profile: str | Path = "quick",
    *,
    warehouse: str | Path | None = None,
    backbone: str | None = None,
    **settings: Any,
) -> Audit:
    """Audit a checkpoint like ``embaudit audit``; repeating the call continues and recomputes nothing.

    Flows run on the server at ``PREFECT_API_URL``; without it, the first call starts a server that is shared by later
    calls and ends with this process. A notebook shows the progress.

    Args:
        checkpoint: packaged:NAME, a local folder, owner/name@revision on the hub, or a loaded ``SentenceTransformer``,
            which is written to ``EMBAUDIT_HOME/models/CHECKPOINT_ID`` and audited from there.
        profile: quick, probes, standard, paper, or a TOML file.
        warehouse: where to publish it; by default ``EMBAUDIT_WAREHOUSE``, or warehouse.duckdb in ``EMBAUDIT_HOME``.
        backbone: also audit this checkpoint and store the differences; ``card``: the one named in the model card.
        settings: fields of ``embaudit.questions.audit.AuditSettings``: measures, corpora, device, seed, …

    Raises:
        EmbauditError: as the command would; ``GateTripped`` for a tripped gate, after publishing. A verdict not to
            serve the checkpoint is no error here: it is the first of the audit's findings.
    """
    asked: dict[str, Any] = {"profile": str(profile), "warehouse": str(warehouse) if warehouse else None, **settings}
    name = str(checkpoint) if isinstance(checkpoint, str | Path) else None
    # Report invalid settings before writing a model.
    request = AuditRequest.of(checkpoint=name or "a loaded model", **asked)
    if name is None:
        request = request.changed(checkpoint=str(save_model(checkpoint, request)))
    refuse_early(request, backbone)
    try:
        with defaults_for_call(), shown_to_caller():
            outcome, _ = run_audit(request, backbone)
    except DoNotServe as error:
        # A verdict, which whoever reads the audit sees first.
        outcome = error.audit
    except EmbauditError:
        raise
    except Exception as error:
        failure = expected_failure(error)
        if failure is None:
            raise
        raise failure from error
    return Audit(warehouse_at(outcome.warehouse), outcome.audit_id, tuple(outcome.warnings))


PREFIX = "embaudit/"
DRAIN_SECONDS = 10.0


class AuditCallback(TrainerCallback):  # type: ignore[misc]
    """Audits the model of a ``SentenceTransformerTrainer`` and adds the figures of its findings to the training log.

    Training waits meanwhile; its random state is the same as without the audit. In a distributed run only the first
    process audits.

    Args:
        on: ``save`` audits each checkpoint that the trainer saves; ``evaluate`` each model that it evaluates, which is
            first written to ``EMBAUDIT_HOME/models``.
        log: called with the figures (``embaudit/problems``, ``embaudit/<finding>``). By default they are added to the
            log history; pass ``trainer.log`` to also send them to the trainer's reporters.
        settings: of ``embaudit.audit``: profile, warehouse, device, …

    Attributes:
        audits: the audits so far, by global step.
    """

    def __init__(
        self,
        on: Literal["save", "evaluate"] = "save",
        log: Callable[[dict[str, float]], None] | None = None,
        **settings: Any,
    ) -> None:
        self.audits: dict[int, Audit] = {}
        self._on = on
        self._log = log
        self._settings = settings

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        if self._on == "save":
            self._audit(Path(args.output_dir) / f"checkpoint-{state.global_step}", state)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any) -> None:
        if self._on == "evaluate":
            self._audit(given["model"], state)

    def _audit(self, checkpoint: Any, state: TrainerState) -> None:
        if not state.is_world_process_zero:
            return
        with _same_random_numbers():
            done = audit(checkpoint, **self._settings)
        self.audits[state.global_step] = done
        figures = {PREFIX + name: value for name, value in done.figures.items()}
        if self._log is not None:
            self._log(figures)
        else:
            state.log_history.append({**figures, "step": state.global_step})


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Restore the random state: loading a model and naming a flow run use the same generators as training."""
    drawn, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            close_event_connection()
            random.setstate(drawn)
            np.random.set_state(numbers)


def close_event_connection() -> None:
    """Flush Prefect's events and close its connection, whose pings draw from ``random``.

    A later flow run opens a new one. Runs in its own thread because a notebook's thread has a running loop.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(EventsWorker.drain_all, timeout=DRAIN_SECONDS, at_exit=False).result()
