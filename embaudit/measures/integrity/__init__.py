"""Is this the network that was trained: weights against files, their forensics, the tokenizer, files that disagree.

``integrity`` runs all of them; each check is a function ``(checkpoint) -> list[Finding]`` that never raises for a
strange model.
"""
