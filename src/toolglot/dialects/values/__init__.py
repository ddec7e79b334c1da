"""Arguments in text: JSON, Python, tags, and the types that a schema wants."""
