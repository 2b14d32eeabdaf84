"""The packages of the checkout under their installed names, which pyproject.toml could only list one by one.

Everything else about the distribution stands in pyproject.toml.
"""

from __future__ import annotations

from setuptools import find_namespace_packages, setup

# As ``package-dir`` in pyproject.toml.
INSTALLED_AS = {"embaudit": "embaudit", "flows": "embaudit_flows", "tasks": "embaudit_tasks", "sql": "embaudit_sql"}


def packages() -> list[str]:
    """Every folder of the four, so that a new one is part of the wheel without being named."""
    return [
        installed + name.removeprefix(folder)
        for folder, installed in INSTALLED_AS.items()
        for name in find_namespace_packages(include=[folder, f"{folder}.*"], exclude=["*__pycache__*"])
    ]


if __name__ == "__main__":
    setup(packages=packages())
