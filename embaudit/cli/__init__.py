"""The command line: one file a command. The only part of embaudit that may import the flows."""
