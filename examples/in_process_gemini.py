"""Google's SDK on another provider's model, without a server: it runs the Python function that the model calls.

    python examples/in_process_gemini.py                                  # on Mistral
    python examples/in_process_gemini.py anthropic/claude-sonnet-4-5

With the provider's key in the environment (or a toolglot.toml) that provider answers; without one, a simulated model
does, offline.
"""

import sys

from google import genai
from google.genai import types

import toolglot


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"7 degrees and rain in {city}"


def main(model: str) -> None:
    # google-genai does not close this client, so it is closed here. For `client.aio`, also pass
    # `httpx_async_client=toolglot.async_client()`; without it, `client.aio` calls Google.
    with toolglot.client() as http_client:
        client = genai.Client(api_key="any", http_options=types.HttpOptions(httpx_client=http_client))
        response = client.models.generate_content(
            model=model,
            contents="What is the weather in Bonn? Use get_weather.",
            config=types.GenerateContentConfig(tools=[get_weather]),
        )
    print(response.text)
    assert "7 degrees" in (response.text or "")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "mistral/mistral-large-latest")
