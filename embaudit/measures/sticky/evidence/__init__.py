"""What stands beside the verdicts: dose, similarity shifts, attention, and where sticky tokens come from."""
