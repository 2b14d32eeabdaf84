"""A Python object that gives vectors of texts, whichever package it is of: none of them is needed here.

``interfaces`` is the table of what objects offer and how they are asked; ``carrier`` asks one, ``rows`` makes vectors
of what it gives, ``named`` imports what ``python:MODULE:NAME`` names.
"""
