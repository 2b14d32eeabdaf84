"""Quality: does a checkpoint do what an embedding is for, and is it declared right?

``material`` has the texts, ``passes`` encodes each once and pools it every way, ``scores`` scores with paired
resamples, ``measured`` ties them to a data set. The findings: ``words`` (against ``baselines``), ``layers``,
``collapse``, ``limit``, ``counterfactual`` (of ``alternatives`` and ``reencoded``) and ``scale``; ``quality`` runs all.
"""
