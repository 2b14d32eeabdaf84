"""Which checkpoints are watched, what is new of them, and what got worse.

``watch_list`` reads the list, ``hub`` and ``folders`` find what its entries stand for, ``look`` says what is new of one
source, ``history`` is what was seen before, ``regression`` compares two audits' figures. Flows run it every night.
"""
