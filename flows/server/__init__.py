"""The Prefect server for commands and Python calls, and Prefect's settings."""
