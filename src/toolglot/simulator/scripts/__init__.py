"""What a simulated model answers: from a script, or from the request itself."""
