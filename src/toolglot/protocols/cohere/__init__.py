"""The Cohere chat protocol, version 2."""
