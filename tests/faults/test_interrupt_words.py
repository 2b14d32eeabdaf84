"""What Ctrl-C says: of staged steps only after a command that stages some."""

from __future__ import annotations

import sys

import pytest

from embaudit.cli.main import STAGING_COMMANDS, cli, report_interrupt


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_only_commands_that_stage_speak_of_steps(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["embaudit", command, "something"])
    assert report_interrupt() == 130
    said = capsys.readouterr().err
    assert "Interrupted." in said
    assert ("Run the same command again" in said) is (command in STAGING_COMMANDS)


def test_the_commands_that_stage_are_there() -> None:
    assert set(cli.commands) >= STAGING_COMMANDS
