"""A real engine as the provider: llama.cpp's own HTTP server over a model of a quarter of a megabyte."""
