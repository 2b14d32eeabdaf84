"""What must hold of every table before it is published, as Great Expectations suites.

``suites`` declares them, one function a table; ``check`` runs them on staged files.
"""
