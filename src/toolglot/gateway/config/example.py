"""The commented `toolglot.toml` that `toolglot init` writes: every setting, every provider, with its default.

Law: a line that begins with `# ` is a comment; one that begins with `#` alone is a setting that is off. The file is
valid as it is, and with all settings on (in an environment that has the keys): tests check both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from toolglot.gateway.config.upstream_table import discovered_upstreams
from toolglot.upstream.providers import PROVIDERS, Provider
from toolglot.upstream.settings import UpstreamSettings

_HEAD: Final = """\
# toolglot.toml: the configuration of `toolglot serve`. docs/gateway-config.md describes all settings.
#
# A line that begins with "#" and no space is a setting that is off: remove the "#" to use it. It shows the default, or
# an example. Keys are never in this file: they are in environment variables, which it names.

[gateway]
#host = "127.0.0.1"                       # any other address than loopback needs client_keys
#port = 8400
#client_keys = ["env:TOOLGLOT_CLIENT_KEY"] # the keys of clients; or "sha256:HEX", "store"
#allowed_origins = ["vscode-webview://*"] # web pages that may use it; without client_keys, no others may
#store = ":memory:"                       # a file, ":memory:" or "off"; default: ~/.local/state/toolglot/gateway.db
#store_seconds = 3                        # how long a request waits for the store
#retention_hours = 168                    # how long stored conversations are kept
#usage_days = 400                         # how long the usage of each client is kept
#max_body_bytes = 67108864
#max_answer_bytes = 67108864              # the largest response of an upstream
#max_bytes_in_flight = 268435456          # bytes of all requests and replies in memory
#max_concurrent = 1000                    # concurrent requests
#max_connections = 20000                  # open connections, including idle ones
#ping_seconds = 15                        # a keep-alive ping in silent streams; 0: none
#drain_seconds = 30                       # how long open responses continue when the gateway stops
#lame_duck_seconds = 0                    # how long it accepts connections before it stops, for load balancers
#websocket_minutes = 60                   # how long a WebSocket may last; 0: none
#websocket_memory_bytes = 67108864        # bytes of conversations that WebSockets keep in memory
#request_memory_bytes = 67108864         # bytes of the last requests, whose histories are not read again; 0: none
#cache_keys = true                        # name sessions to upstreams that keep prompt caches by a key
#log = "text"                             # or "json", "off"
#reports = 500                            # how many requests /toolglot/requests keeps
#metrics = "keyed"                        # who may read /metrics: or "open", "off"
#metrics_key = "env:TOOLGLOT_METRICS_KEY" # the key for /metrics only; or "sha256:HEX"
#tracing = false                          # OpenTelemetry spans: pip install '.[otel]'
#middleware = ["my_package.my_module:MyMiddleware"]
#simulate = true                          # list the models that simulated/PROVIDER/MODEL names; false: none

# What is kept of past requests, in memory: docs/captures.md.
#[inspector]
#keep = "bodies"                          # or "reports", "off"; default: bodies only on loopback without client_keys
#max_bytes = 67108864                     # of everything that is kept
#max_hours = 24

# See "Policies" in docs/convert.md.
#[policy]
#server_tools = "spare"                   # tools that only another provider can run: or "refuse", "drop"
#required = "auto"                        # required fields that are called optional: or "keep", "filter", "aggressive"
#ids = "reversible"                       # or "canonical"
#responses_id_style = "call"              # or "clasp"
#stream_calls = "live"                    # or "whole": a call is sent when it is complete
#calls_in_text = "profile"                # calls that a model writes as text: or "always", "never"
#unoffered_calls = "call"                 # such calls of tools that the request does not have: or "text"
#deferred_tools = "late"                  # tools that are loaded later, where there is no such thing: or "start"
#cache_markers = "place"                  # cache markers for clients that have none, on Claude: or "carry"
#missing_result = "[No result: the tool call was interrupted. It may or may not have run.]"
#bridge_user = "Continue."
#bridge_assistant = "OK."

# --- upstreams: requests for "NAME/model" go to [upstreams.NAME] ----------------------------------------------

# All settings of an upstream, here for a server of your own:
#[upstreams.box]
#url = "http://127.0.0.1:9000/v1"         # plain http only on this machine, or with insecure = true
#target = "vllm"                          # the profile; default: [profiles.box], or openai_compatible
#key_env = "BOX_API_KEY"                  # the variable that holds the key
#auth = "bearer"                          # or "x-api-key", "x-goog-api-key", "api-key", "aws", "none"
#headers = { "x-team" = "env:TEAM" }      # sent with every request
#proxy = "http://proxy.example:3128"      # default: HTTPS_PROXY and NO_PROXY
#insecure = false
#connect_seconds = 10
#first_byte_seconds = 600
#idle_seconds = 300
#keep_alive_seconds = 4                   # a connection that was idle for longer is not reused
#retries = 0                              # how often a request is sent again if it is busy, down or silent
#retry_seconds = 8                        # the maximum wait before that
#max_concurrent = 0                       # concurrent requests; 0: no limit
#breaker_failures = 5                     # failures in a row after which it is not called for a while
#breaker_seconds = 20
#models = ["tuned-7b", "llama-*"]         # need no prefix; listings show those that are not patterns
"""

_TAIL: Final = """\
# --- models: the names that clients use, and the upstreams that get them --------------------------------------

#[models]
#"opus" = "openai/gpt-5.5"                # a tier: every model with this word in its name, such as claude-opus-5
#"sonnet" = "mistral/mistral-large-latest"
#"haiku" = "gemini/gemini-2.5-flash"
#"gpt-4o*" = "anthropic/claude-sonnet-4-5" # a pattern
#"my-model" = "box/tuned-7b"              # a name
#"fast" = ["groq/llama-3.3-70b", "cerebras/llama-3.3-70b"] # the next one if one fails
#"even" = { to = ["openai/gpt-5.5", "azure/gpt-5.5"], weights = [3, 1] } # each conversation to one of them
#"*" = "openrouter/*"                     # everything else, under its own name

# A name can have settings of its own; so can each target of a list, as a table with `to`.
#[models.careful]
#to = ["anthropic/claude-opus-5", { to = "openai/gpt-5.5", force = { reasoning_effort = "high" } }]
#system = "Answer in English."            # a system prompt before the client's own
#policy = { stream_calls = "whole" }      # fields of [policy]
#target = "anthropic"                     # the profile of its upstreams, built-in or of [profiles]
#headers = { "x-team" = "env:TEAM" }
#retries = 2                              # these five replace the settings of the upstream
#retry_seconds = 4
#connect_seconds = 5
#first_byte_seconds = 120
#idle_seconds = 60
#[models.careful.default]                 # for what the client leaves out
#max_tokens = 16000
#top_p = 0.95
#top_k = 40
#stop = ["END"]
#seed = 7
#presence_penalty = 0
#frequency_penalty = 0
#[models.careful.force]                   # instead of what the client sends
#temperature = 0.2
#reasoning_mode = "adaptive"              # or "off", "on", "between_tools"
#reasoning_effort = "medium"
#reasoning_budget_tokens = 8000
#tool_choice = "auto"                     # or "none", "required"
#parallel_tool_calls = false

# --- keys: client keys with limits; `toolglot keys add` makes more, see docs/keys.md --------------------------

#[keys.ci]
#key = "env:TOOLGLOT_CI_KEY"              # the variable that holds it; or "sha256:HEX"
#models = ["gpt-5*", "haiku"]             # the models that it may use; default: all
#requests_per_minute = 60
#tokens_per_minute = 500000
#tokens_per_day = 2000000
#tokens_per_month = 40000000
#tokens_total = 500000000
#spend_per_day = 5                        # US dollars
#spend_per_month = 50
#spend_total = 500

# --- web search: an MCP server of yours for upstreams without a web search; see docs/gateway.md ---------------

#[web_search]
#mcp = { command = "uvx", args = ["my-search-server"], env = { SEARCH_KEY = "${SEARCH_KEY}" } } # or { url = "…" }
#search_tool = ""                         # default: the tool whose name contains "search"
#fetch_tool = ""                          # default: the tool whose name contains "fetch"
#max_uses = 8                             # searches and fetches for one reply
#timeout = 30                             # seconds for one search
#max_result_bytes = 50000                 # of one result, the model reads at most this

# --- prices: US dollars for a million tokens, if they differ from the built-in list; see docs/keys.md ---------

#[prices."box/*"]                         # a model or a pattern, with or without its upstream
#input = 0
#output = 0
#cache_read = 0                           # default: as input
#cache_write = 0

# --- profiles: what a target demands, if the built-in profile is wrong; see docs/profiles.md ------------------

#[profiles.box]
#extends = "vllm"
#[profiles.box.rules]
#"ids.max_length" = 64
"""


def example_config(environ: Mapping[str, str]) -> str:
    """The text of the file; providers whose key is in the environment are on."""
    found, _ = discovered_upstreams(environ)
    sections = ("\n".join(_section(provider, found.get(provider.name))) for provider in PROVIDERS.values())
    return "\n".join([_HEAD, *(f"{section}\n" for section in sections), _TAIL])


def _section(provider: Provider, found: UpstreamSettings | None) -> Iterator[str]:
    yield f"# {provider.title}"
    if provider.url_form:
        variables = ", ".join(" or ".join(names) for names in provider.url_env.values())
        yield f"# url: {provider.url_form}"
        yield f"#   or these variables: {variables}"
    yield f"{'#' if found is None else ''}[upstreams.{provider.name}]"
    # The file names a variable that was found, even if it is the default, so that it shows which one is used.
    key_env = found.key_env if found else ""
    yield f'{"" if key_env else "#"}key_env = "{key_env or provider.key_env[0]}"'
    if provider.url:
        yield f'#url = "{provider.url}"'
