"""toolglot."""
