"""The command line; commands that belong together share a file. The only part of embaudit that may import the flows."""
