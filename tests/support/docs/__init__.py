"""The code blocks of the documentation, and what runs them."""
