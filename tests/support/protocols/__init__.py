"""Bodies of each protocol: written from a script, and read without the codecs."""
