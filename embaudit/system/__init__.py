"""This machine: files, settings, addresses, packages, processors, and every contact with the Hugging Face hub."""
