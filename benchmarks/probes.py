"""The seven probes without Prefect: each by itself after the checkpoint is loaded, on the embedded sample.

Encoding is nearly all of it: about 150 000 tokens (the collection 30 000, surface 10 000, meaning 13 000, position
32 000, attractors 1 000, chunks 54 000, languages 11 000) of 21 MFLOP each in all-MiniLM-L6-v2, 3.2 TFLOP.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.measured import Measured
from embaudit.checkpoint import load_checkpoint
from embaudit.checkpoint.precision import operations_per_second, widths_of
from embaudit.measures import MEASURES
from embaudit.measures.collection import collection_of
from embaudit.measures.listed import load_profile
from embaudit.measures.measure import CollectionSettings
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, encoder_of

CHECKPOINT = "packaged:all-MiniLM-L6-v2"


def run() -> Iterator[Measured]:
    checkpoint = load_checkpoint(CHECKPOINT)
    spec = CheckpointSpec(reference=CHECKPOINT, checkpoint_id=checkpoint.checkpoint_id, device="cpu", dtype="float32")
    widths = widths_of(checkpoint.resolved.folder / checkpoint.recipe.transformer_path)
    encoder_of(spec).encode_texts(["pages of the weights and threads are there"] * 50)
    with tempfile.TemporaryDirectory() as staging:
        profile = load_profile("probes")
        corpusless = {
            name: getattr(profile, name).model_copy(update={"corpora": ()})
            for name, measure in MEASURES.items()
            if measure.shares
        }
        profile = profile.model_copy(update=corpusless)
        one = Run(spec=spec, staging=staging, seed=0, profile=profile, widths=widths, corpora={})
        seconds = {"the collection": _seconds(lambda: collection_of(one, CollectionSettings(corpora=())))}
        for name in corpusless:
            seconds[name] = _seconds(partial(MEASURES[name].parts().measure, one))
    parts = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items())
    rate = operations_per_second("cpu", "float32", widths)
    yield Measured("the seven probes on the embedded sample", f"{sum(seconds.values()):.1f} s ({parts})", "≤ 30 s")
    yield Measured("float32 layers of the model's shapes beside it", f"{rate / 1e9:.0f} GFLOP/s")


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
