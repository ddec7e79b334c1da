"""The OpenAI Responses protocol."""
