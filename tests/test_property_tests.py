"""Property tests draw the same examples whatever else a worker has loaded."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

EXTRA = "NUMBERS, SHARES = (123_457, 765_431), (0.123457, 0.765431)\nWORDS, BLOBS = ('sesquipedalian', b'\\x07\\x0b')\n"


def drawn() -> list[tuple[int, float, str, bytes]]:
    """The examples of a property test, as it draws them from the beginning."""
    found = []

    @settings(max_examples=200)
    @given(st.integers(0, 10**6), st.floats(0, 1), st.text(), st.binary())
    def test(number: int, share: float, text: str, data: bytes) -> None:
        found.append((number, share, text, data))

    test()
    return found


def load(name: str, folder: Path) -> None:
    """A module as a test loads it: with constants that no test has drawn before."""
    file = folder / f"{name}.py"
    file.write_text(EXTRA, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For modules that are gone after the test."""
    for name in ("more_constants", "further_constants"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, name, pytest)
    return tmp_path


def test_examples_do_not_depend_on_which_modules_are_loaded(folder: Path) -> None:
    before = drawn()
    load("more_constants", folder)

    assert drawn() == before
    assert len(set(before)) > 100


def test_left_alone_hypothesis_would_draw_from_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, Hypothesis takes no more constants from modules, and what tests/conftest.py changes can go."""
    providers.CONSTANTS_CACHE.cache.clear()
    monkeypatch.setattr(providers, "_get_local_constants", providers._get_local_constants.__wrapped__)  # type: ignore[attr-defined]
    monkeypatch.setattr(providers, "_local_constants", Constants())
    monkeypatch.setattr(providers, "_seen_modules", set(map(id, sys.modules.values())))
    before = drawn()
    load("further_constants", folder)
    # It looks again where the number of modules has changed.
    monkeypatch.setattr(providers, "_sys_modules_len", None)

    after = drawn()

    providers.CONSTANTS_CACHE.cache.clear()
    assert after != before
    assert {0.123457, 0.765431} & {share for _, share, _, _ in after}
