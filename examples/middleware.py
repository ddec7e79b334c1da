"""A middleware chain without a gateway: tools in the form of each provider, and its calls as canonical ones."""

from typing import Any

from toolglot import MiddlewareChain, Request, Response, ToolingMiddleware


class Audit:
    """Your own step: it comes last, for requests and for responses."""

    def process_request(self, request: Request) -> None:
        print(f"to {request.provider_id}:", [*(request.tools or [{}])[0]])

    def process_response(self, response: Response) -> None:
        print(f"from {response.provider_id}:", len(response.body), "bytes")


def send(request: Request) -> Response:
    """A fake provider: it calls the first tool of the request."""
    tool: dict[str, Any] = (request.tools or [])[0]
    if request.provider_id == "anthropic":
        block = f'{{"type": "tool_use", "id": "toolu_1", "name": "{tool["name"]}", "input": {{"city": "Oslo"}}}}'
        body = f'{{"content": [{block}]}}'
    else:
        name = tool["functionDeclarations"][0]["name"]
        part = f'{{"functionCall": {{"name": "{name}", "args": {{"city": "Oslo"}}}}}}'
        body = f'{{"candidates": [{{"content": {{"role": "model", "parts": [{part}]}}}}]}}'
    return Response(body, request.provider_id, request=request)


schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
chain = MiddlewareChain([ToolingMiddleware(), Audit()])

for model, provider in [("claude-sonnet-4-5", "anthropic"), ("gemini-2.5-pro", "google")]:
    request = Request(
        model=model,
        provider_id=provider,
        messages=[{"role": "user", "content": "What's the weather?"}],
        tools=[{"name": "get weather", "description": "Get weather", "input_schema": schema}],
    )
    chain.process_request(request)
    response = send(request)
    chain.process_response(response)
    print("  anthropic:", response.get_tool_calls("anthropic"))
    print("  openai:   ", response.get_tool_calls("openai"))
    for call in response.tool_calls:  # canonical, with the name of the tool in the request
        print("  canonical:", call.id, call.name, call.arguments)
