"""A list of severe tokens of the tiny checkpoint, as ``embaudit filter`` would write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.remedies.screening import SevereToken, TokenList

LOSSES = {"river": 0.6, "##ing": 0.5, "stone": 0.3, "[unused1]": 0.4}


@pytest.fixture(scope="session")
def token_list(tiny_checkpoint: Path) -> TokenList:
    """``river``, ``##ing``, ``stone``, and a row that no text can produce."""
    lone = load_tokenizer_alone(str(tiny_checkpoint))
    tokenizer, sha256 = lone.tokenizer, lone.sha256
    ids = tokenizer.get_vocab()
    return TokenList(
        checkpoint=str(tiny_checkpoint),
        checkpoint_id="c1",
        tokenizer_sha256=sha256,
        max_length=64,
        audit_id="a1",
        severity="moderate",
        validated=80,
        tokens=tuple(
            SevereToken(
                token_id=ids[token],
                token=token,
                text=token,
                is_reachable="unused" not in token,
                loss=loss,
                severity="strong" if loss >= 0.5 else "moderate",
            )
            for token, loss in sorted(LOSSES.items(), key=lambda item: -item[1])
        ),
    )


@pytest.fixture
def severe_json(token_list: TokenList, tmp_path: Path) -> Path:
    path = tmp_path / "severe.json"
    path.write_text(token_list.as_json(is_ascii=False), encoding="utf-8")
    return path
