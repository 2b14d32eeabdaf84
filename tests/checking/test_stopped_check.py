"""Ctrl-C leaves a verdict on what ran; weights are in memory once while a check runs."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from commands import CLI
from tiny import tiny_bert
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import PreTrainedModel

from embaudit.checkpoint.model import forget_models
from embaudit.declared.rule import Finding, guarded
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.check.check import PARTS, STOPPED, CheckReport, check
from embaudit.words.errors import EXIT_USAGE


def few() -> Material:
    sample = sample_material()
    return Material(tuple(some.first(40) for some in sample.pairs), (sample.collections[0].first(10, 20)[0],))


def stop(line: str) -> None:
    """Ctrl-C while the first line is printed."""
    assert line.startswith("Files, tokenizer and weights of ")
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def handled() -> None:
    """Ctrl-C as Python has it, whatever handler another test has left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("base", [None, "packaged:none"])
def test_ctrl_c_leaves_a_verdict_on_what_ran(base: str | None, tmp_path: Path, handled: None) -> None:
    folder = str(tiny_bert(tmp_path / "m"))
    report = check(folder, material=few(), base=base, progress=stop, keeps_what_ran=True)
    (stopped,) = (finding for finding in report.findings if finding.name == STOPPED)
    assert ("base" in stopped.sentence) == (base is not None)
    assert "scores" in stopped.sentence
    assert PARTS["integrity"] not in stopped.sentence
    assert "weights_from_file" in {finding.name for finding in report.findings}
    assert "one_function" not in {finding.name for finding in report.findings}
    # Problems were found, and it was not checked as a whole all the same.
    assert report.verdict == "do not serve"
    assert report.exit_code == EXIT_USAGE


def test_a_stopped_check_that_found_nothing_is_not_passed() -> None:
    ok, left = Finding("ok", "Fine.", name="norm"), Finding("not measured", "Stopped.", name=STOPPED)
    report = CheckReport("m", "id", (ok, left))
    assert report.verdict == "could not be checked"
    assert report.exit_code == EXIT_USAGE


def test_from_python_it_is_raised(tmp_path: Path, handled: None) -> None:
    with pytest.raises(KeyboardInterrupt):
        check(str(tiny_bert(tmp_path / "m")), material=few(), progress=stop)


def test_what_a_library_makes_of_ctrl_c_is_no_finding() -> None:
    def part() -> list[Finding]:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("a library's own words") from error

    with pytest.raises(KeyboardInterrupt):
        guarded("part", part)


@pytest.mark.slow
def test_the_command_ends_with_a_verdict(tmp_path: Path) -> None:
    command = [*CLI, "check", str(tiny_bert(tmp_path / "m")), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "HF_HUB_OFFLINE": "1"}, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Files, tokenizer and weights of "):
            process.send_signal(signal.SIGINT)
            break
    output, _ = process.communicate(timeout=120)
    assert process.returncode == EXIT_USAGE
    assert any("was stopped" in sentence for sentence in json.loads(output)["not_measured"])


@pytest.mark.slow
@pytest.mark.parametrize("has_base", [False, True])
def test_weights_are_in_memory_once(has_base: bool, tmp_path: Path) -> None:
    """At every pass, of all models that there are: the weights in float32, or in half precision when those are gone."""
    forget_models()
    gc.collect()
    folder = tiny_bert(tmp_path / "m")
    others = {id(one) for one in gc.get_objects() if isinstance(one, PreTrainedModel)}
    held: set[tuple[torch.dtype, ...]] = set()

    def count(module: torch.nn.Module, given: object) -> None:
        if isinstance(module, PreTrainedModel) and id(module) not in others:
            models = [one for one in gc.get_objects() if isinstance(one, PreTrainedModel) and id(one) not in others]
            held.add(tuple(sorted((one.dtype for one in models), key=str)))

    hook = register_module_forward_pre_hook(count)
    try:
        check(str(folder), material=few(), base=str(tiny_bert(tmp_path / "b", seed=1)) if has_base else None)
    finally:
        hook.remove()
    single = {(torch.float32,), (torch.bfloat16,), (torch.float16,)}
    # The base runs beside two whose weights are compared and stay in their files, as they are stored.
    beside_base = {(torch.float32,) * 3}
    assert held == (single | beside_base if has_base else single)
