"""Find out how an endpoint handles tools, and use the result: here with a simulated endpoint that is odd on purpose.

Against a real endpoint: `python examples/probe_endpoint.py http://127.0.0.1:8000/v1`.
"""

import asyncio
import sys

from toolglot import convert
from toolglot.discovery import Discovery, DiscoveryResult, Endpoint, overrides_of, profile_toml
from toolglot.profiles import Overrides
from toolglot.simulator import Simulator, url_of
from toolglot.upstream import AsgiTransport, HttpTransport

ODD = Overrides(
    '[profiles.groq.rules]\n"ids.max_length" = 20\n"results.user_after" = false\n"turns.alternate" = true\n'
)


async def find_out(url: str) -> DiscoveryResult:
    if url:
        transport: AsgiTransport | HttpTransport = HttpTransport()
    else:
        url, transport = url_of("http://odd.test", "groq"), AsgiTransport(Simulator(overrides=ODD))
    try:
        return await Discovery(Endpoint(url=url, transport=transport, key="any"), name="box").run()
    finally:
        await transport.close()


def main() -> None:
    result = asyncio.run(find_out(sys.argv[1] if len(sys.argv) > 1 else ""))
    if not result.sdk.protocol:
        sys.exit(result.stopped)
    print(f"{result.provider.url} speaks {result.sdk.protocol}; {result.spent.requests} requests were sent")
    for quirk in result.tooling.quirks:
        print(f"  quirk: {quirk}")
    print(f"{len(profile_toml(result).splitlines())} lines of TOML for toolglot serve")
    call = {"id": "call_" + "x" * 35, "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    body = {
        "model": result.provider.model,
        "messages": [
            {"role": "user", "content": "List the files."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "a.txt"},
            {"role": "user", "content": "And now?"},
        ],
    }
    out = convert(body, source="openai", target="box", overrides=overrides_of(result))
    for entry in out.report.entries:
        print(f"  changed: {entry.reason}")


if __name__ == "__main__":
    main()
