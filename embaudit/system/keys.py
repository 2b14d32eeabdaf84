"""Content keys: the same question has the same key on any machine, in any run.

A measure's key covers everything that its values depend on (checkpoint, inputs, settings, dtype, device kind,
seed, version) and nothing else; changing any part recomputes exactly what depends on it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

KEY_DIGITS = 16


def content_key(**parts: Any) -> str:
    """16 hex digits of the sha256 of the parts' canonical JSON; parts must be JSON values."""
    canonical = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:KEY_DIGITS]
