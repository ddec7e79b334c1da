"""One file per coding agent: what can be wrong in its session files, and how it is fixed."""
