"""``python -m embaudit.questions.passport.schema`` prints the JSON Schema of a passport."""

from __future__ import annotations

import json
from typing import Any

from embaudit.questions.passport.passport import CHECKSUM, Passport

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def passport_schema() -> dict[str, Any]:
    """The schema of a passport as it is written: with every key, and a checksum."""
    schema = Passport.model_json_schema(mode="serialization")
    schema["properties"][CHECKSUM] = {
        "type": "string",
        "pattern": "^sha256:[0-9a-f]{64}$",
        "description": "sha256 of the content without this key, as JSON in ASCII with sorted keys and no spaces.",
    }
    return {"$schema": DRAFT, **schema, "required": [*schema["required"], CHECKSUM]}


if __name__ == "__main__":
    print(json.dumps(passport_schema(), indent=1, ensure_ascii=False))
