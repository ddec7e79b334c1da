"""The native chat protocol of Ollama."""
