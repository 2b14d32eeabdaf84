"""SQL as files: migrations, views, and the questions people ask by name. Installed as ``embaudit_sql``."""
