"""The test files that `make quick` leaves out, as patterns of their paths in `tests`.

A pattern that matches no file is a mistake: a file was renamed, and the fast loop runs it again (test_quick_tests.py).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[2]

SERVERS: Final = (
    "cli/test_cli_chat.py",
    "cli/test_cli_chat_parts.py",
    "cli/test_cli_chat_session.py",
    "cli/test_cli_doctor.py",
    "cli/test_cli_run.py",
    "cli/test_cli_shell.py",
    "cli/test_cli_store_servers.py",
    "clients/*",
    "discovery/*",
    "gateway/endpoints/test_gateway_endpoints.py",
    "gateway/endpoints/test_gateway_listing.py",
    "gateway/endpoints/test_gateway_openapi.py",
    "gateway/endpoints/test_gateway_pass_through.py",
    "gateway/endpoints/test_gateway_probes.py",
    "gateway/config/test_gateway_reloading.py",
    "gateway/http/test_gateway_connection_limit.py",
    "gateway/http/test_gateway_connections.py",
    "gateway/http/test_gateway_graceful_shutdown.py",
    "gateway/http/test_gateway_memory.py",
    "gateway/http/test_gateway_safety.py",
    "gateway/http/test_gateway_workers.py",
    "gateway/inspector/browser/*",
    "gateway/observability/test_gateway_dashboard.py",
    "gateway/observability/test_gateway_metrics.py",
    "gateway/observability/test_gateway_tracing.py",
    "gateway/routing/test_cache_keys.py",
    "gateway/routing/test_placed_markers.py",
    "gateway/routing/test_gateway_fallback.py",
    "gateway/routing/test_gateway_middleware.py",
    "gateway/routing/test_gateway_route_settings.py",
    "gateway/routing/test_gateway_unreachable.py",
    "gateway/state/*",
    "gateway/test_*.py",
    "hostile/*",
    "protocols/errors/test_protocol_errors_sdks.py",
    "simulator/test_simulator_app.py",
    "simulator/test_simulator_faults.py",
    "simulator/test_simulator_sdks.py",
    "simulator/test_simulator_use.py",
    "store/*",
    "test_agents.py",
    "test_docs.py",
    "test_package.py",
    "test_run_folder.py",
    "upstream/test_upstream_*.py",
)
"""Their tests start servers or other processes."""

SLOW: Final = (
    "arguments/test_arguments.py",
    "cli/test_cli_bare.py",
    "cli/test_cli_chat_in_process.py",
    "cli/test_cli_demo.py",
    "cli/test_cli_explain.py",
    "cli/test_cli_locations.py",
    "cli/test_cli_sessions.py",
    "conversation/test_ids_projection.py",
    "conversation/test_tool_memory.py",
    "dialects/test_calls_in_text.py",
    "dialects/test_dialect_auto.py",
    "dialects/test_dialect_laws.py",
    "dialects/test_dialect_scanner.py",
    "dialects/test_dialect_thoughts.py",
    "dialects/test_dialect_truncation.py",
    "gateway/config/test_gateway_config.py",
    "gateway/config/test_gateway_config_hostile.py",
    "gateway/endpoints/test_token_counting.py",
    "history/test_history_operations.py",
    "llama/*",
    "protocols/errors/test_protocol_errors.py",
    "protocols/errors/test_protocol_errors_known.py",
    "protocols/gemini/test_stream_gemini.py",
    "protocols/lenient/test_streams_lenient.py",
    "protocols/test_protocol_laws.py",
    "referee/test_referee_outside.py",
    "render/test_failures_ids.py",
    "render/test_failures_more.py",
    "render/test_failures_pairing.py",
    "render/test_linear_faults.py",
    "runtime/*",
    "schema/test_schema_lower_laws.py",
    "schema/test_schema_lower_strict.py",
    "simulator/test_simulation.py",
    "test_jsontext.py",
    "test_masking.py",
    "test_performance_page.py",
    "test_types.py",
    "translate/test_broken_chat_streams.py",
    "translate/test_convert_laws.py",
    "translate/test_sdk_replies.py",
    "translate/test_streams*.py",
)
"""Their tests take most of the time."""


def is_left_out(path: Path) -> bool:
    """Of a file or folder of the tests, whether `make quick` leaves it out."""
    name = path.relative_to(TESTS).as_posix()
    return any(fnmatchcase(name, pattern) for pattern in (*SERVERS, *SLOW))
