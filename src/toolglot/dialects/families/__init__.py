"""Ways of writing calls that several dialects share. `known/` has one file for each dialect."""
