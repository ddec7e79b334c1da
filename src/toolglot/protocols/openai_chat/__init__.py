"""The OpenAI Chat Completions protocol, as OpenAI and the hosts that are compatible with it speak it."""
