"""Evidence for the verdicts, which changes none of them: dose, shifts, attention, and where sticky tokens come from."""
