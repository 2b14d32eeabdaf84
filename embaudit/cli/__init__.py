"""The command line, one file per command. The only part of embaudit that may import the flows."""
