"""The command line in tests: commands, a terminal, a folder to run sessions in."""
