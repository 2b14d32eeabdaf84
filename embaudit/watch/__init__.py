"""Watching checkpoints, and asking questions at night: what is new, and what got worse.

``watch_list`` reads the list, ``hub`` and ``folders`` find the checkpoints of its entries, ``look`` decides what is new
for one source, ``history`` holds what was seen before. ``asked`` turns entries into questions, ``[[endpoint]]`` and
``[[index]]`` too. ``happening`` is the table of what a night can find, ``outcome`` what this one found.
"""
