"""Additional evidence that does not affect verdicts: dose, shift, attention, enrichment, shape of similarities."""
