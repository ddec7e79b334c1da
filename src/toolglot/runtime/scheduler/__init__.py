"""How calls of a model are run: checked, approved, limited, cancelled, each exactly once."""
