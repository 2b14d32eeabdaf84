"""Stored vectors: what an index's export shows by itself, and whether a checkpoint built it.

``rows`` is what readers give. ``profile`` and ``neighbours`` read an index once each; ``alone`` puts together what they
show. ``against`` encodes a random sample again, in the form (``forms``) that the index stores, and ``reasons`` explain
what differs; ``every_row`` does so for all rows. ``report`` runs all of it, ``findings`` say what follows.
"""
