"""Prefect flows: what runs in which order. ``audit`` is the main one; each measure is a sub-flow."""

from embaudit.system.processors import share_processors

# No command of embaudit need have started this process, and the flows import torch.
share_processors()
