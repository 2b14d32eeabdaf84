"""The Prefect server that a command or a call from Python runs its flows on, and Prefect's settings for it."""
