"""The history of a session on disk: its entries, its row in the list of sessions, and the claim of a process on it."""
