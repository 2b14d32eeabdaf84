"""The switch to a new revision: what becomes of the index that the old one built, and of a cut-off.

``material`` holds the vectors of both, ``encode`` makes them, ``same_text``, ``search``, ``bridge`` and ``cut_offs``
measure, ``findings`` and ``verdict`` say what follows, and ``switch`` runs it all.
"""
