"""Tools, calls and the choice between them, as the target takes them."""
