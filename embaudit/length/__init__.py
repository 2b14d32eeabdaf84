"""Length collapse: how much more alike long texts are than short ones, and how much of that needs no attention.

arXiv 2410.24200. ``curve`` measures similarity by length under four conditions, ``rises`` compares them, ``bias`` asks
what length does to neighbours and to unrelated pairs, ``heads`` measures σ_a by layer, head and length, and ``bound``
is the published bound on σ_a with the simulation that tells where it holds.
"""

# Changing how a value is computed changes this number, and with it every cache key of the measure.
MEASURE_VERSION = 1
