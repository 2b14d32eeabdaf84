"""What is done about what was found: texts screened, tokens taken out of a checkpoint, attention temperature."""
