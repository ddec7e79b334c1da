"""The built-in dialects: one file for each, or for several that hardly differ. `DIALECTS` lists those of a file."""
