"""Checks of every table before it is published, as Great Expectations suites.

``suites`` builds them from the tables' declarations; ``check`` runs them on staged files.
"""
