"""Watching checkpoints: what is new, and what got worse.

``watch_list`` reads the list, ``hub`` and ``folders`` find the checkpoints of its entries, ``look`` decides what is new
for one source, ``history`` holds what was seen before, and ``regression`` compares the figures of two audits.
"""
