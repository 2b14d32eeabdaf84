"""Asks the commands' questions as the commands do."""

from __future__ import annotations

from typing import Any

from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.opened import AS_IT_IS, CallOptions, open_function
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.check.served import check_served
from embaudit.questions.parity.parity import compare_with
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with
from embaudit.questions.report import Report

CPU = LoadOptions(device="cpu")
# Pairs and queries decide nothing of another function; a check measures scores on some.
SHARE = 0.05


def parity(checkpoint: Checkpoint, other: Any, asked: CallOptions = AS_IT_IS) -> Report:
    with open_function(other, CPU, asked) as function:
        return compare_with(CheckpointFunction(checkpoint), function, Material())


def verify(checkpoint: Checkpoint, other: Any, asked: CallOptions = AS_IT_IS) -> Report:
    with open_function(other, CPU, asked) as function:
        return verify_with(make_passport(CheckpointFunction(checkpoint)), function)


def check(other: Any, asked: CallOptions = AS_IT_IS) -> Report:
    with open_function(other, CPU, asked) as function:
        return check_served(function, sample_material().part(SHARE))


def served_parity(checkpoint: Checkpoint, served: Served, asked: CallOptions = AS_IT_IS) -> Report:
    with serving(served) as address:
        return parity(checkpoint, address, asked)


def served_verify(checkpoint: Checkpoint, served: Served) -> Report:
    with serving(served) as address:
        return verify(checkpoint, address)


def served_check(served: Served) -> Report:
    with serving(served) as address:
        return check(address)
