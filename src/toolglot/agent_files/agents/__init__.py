"""One file per coding agent: where its sessions are, and how they are read and written."""
