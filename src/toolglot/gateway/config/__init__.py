"""The configuration: `toolglot.toml` as typed values, with the line of every mistake."""
