"""A trainer callback that audits checkpoints during training."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from prefect.events.worker import EventsWorker
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from embaudit.api.audit import audit
from embaudit.api.reading import Audit

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
