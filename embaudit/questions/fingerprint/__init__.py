"""A model's fingerprint, made by a user: ``sources`` has the vectors, ``make`` what comes of them.

What a fingerprint is, how it is fitted, kept and compared is in ``questions/vectors``, which names models by them.
"""
