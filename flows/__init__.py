"""Prefect flows: what runs in which order. ``audit`` is the main one; each measure is a sub-flow."""
