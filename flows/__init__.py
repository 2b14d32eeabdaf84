"""Prefect flows: what runs in which order. ``audit`` is the main job; each measure is a sub-flow."""
