"""Generated bodies, one file a protocol."""
