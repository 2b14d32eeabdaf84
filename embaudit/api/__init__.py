"""embaudit from Python: ``embaudit.audit``, ``embaudit.open`` and ``embaudit.AuditCallback`` (docs/python.md)."""
