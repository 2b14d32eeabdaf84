"""Watching checkpoints, endpoints and indexes: what is new, and what got worse.

``watch_list`` reads the list, ``hub`` and ``folders`` find the checkpoints of its entries, ``look`` decides what is new
for one source, ``history`` holds what was seen before, and ``regression`` compares the figures of two audits.

``served`` asks endpoints. ``index_check`` looks at an index: its rows (``index_rows``), what is open (``index_open``),
kept between two nights (``index_seen``) and said of it (``index_said``).
"""
