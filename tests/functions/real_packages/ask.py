"""Asks one of ``objects`` as embaudit does, in the package's own environment: python ask.py NAME ADDRESS.

Reads a request a line from stdin (role, texts), and writes an answer a line: the vectors, and why there are none.
"""

import json
import sys

import objects

from embaudit.embedders.object.carrier import ObjectFunction

name, address = sys.argv[1:]
function = ObjectFunction(getattr(objects, name)(address))
SAID = ("name", "interface", "similarity", "limit", "takes_roles", "tells_roles_apart")
print(json.dumps({one: getattr(function, one) for one in SAID}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        answers = function.encode(asked["texts"], asked["role"], most=len(asked["texts"]))
        print(json.dumps({"vectors": answers.vectors.tolist(), "failures": answers.failures}), flush=True)
    except Exception as error:
        print(json.dumps({"error": str(error)}), flush=True)
