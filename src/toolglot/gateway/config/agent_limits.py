"""What to set in each coding agent, so that it compacts a conversation before the model behind the gateway refuses it.

An agent knows the context windows of its own provider's models. Behind a gateway its model may be another one, with
another window. The settings were read from the agents themselves: Claude Code 2.1.326, Codex 0.169.0, Gemini CLI
0.61.0, opencode 1.18.33.

Law: only models whose window is known are shown; nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from toolglot import profiles
from toolglot.errors import InputError
from toolglot.gateway.config.settings import Config
from toolglot.gateway.observability.checkup import CheckResult
from toolglot.profiles import Profile
from toolglot.profiles.rules import ContextRules
from toolglot.upstream.routing.model_names import REQUESTED, Destination, is_pattern

_PART: Final = "models"
MAX_SHOWN: Final = 10
"""Models whose settings are shown."""
CLAUDE_WINDOWS: Final = range(100_000, 1_000_001)
"""What CLAUDE_CODE_AUTO_COMPACT_WINDOW accepts."""
GEMINI_WINDOW: Final = 1_048_576
"""The window that Gemini CLI assumes, whatever the model is."""
OPENCODE_OUTPUT: Final = 32_000
"""The longest reply that opencode asks for. It must be named, also where the model's limit is not known."""
FULL: Final = 0.8
"""The part of a window at which Gemini CLI is to compress."""


def check_models(config: Config) -> list[CheckResult]:
    """The windows of the models that `[models]` leads to, and what to set in each agent for them."""
    names: dict[Destination, list[str]] = {}
    for entry in config.models:
        if entry.destination.model != REQUESTED and not entry.destination.simulated:
            names.setdefault(entry.destination, []).append(entry.name)
    found = [_check(config, destination, listed) for destination, listed in names.items()]
    more = len(found) - MAX_SHOWN
    if more > 0:
        found = [*found[:MAX_SHOWN], CheckResult(_PART, "ok", f"and {more} more")]
    return found


def _check(config: Config, destination: Destination, names: list[str]) -> CheckResult:
    title = f"{', '.join(names)} → {destination.upstream}/{destination.model}"
    profile = _profile(config, destination)
    if profile is None or profile.context.window is None:
        todo = f'if you know it, set "context.window" in [profiles.{profile.name if profile else "NAME"}.rules]'
        return CheckResult(_PART, "ok", f"{title}: its context window is not known", todo)
    limits = profile.context
    output = f", replies of {limits.output:,}" if limits.output is not None else ""
    message = f"{title}: {limits.window:,} tokens{output}. Set in the agents that use it:"
    return CheckResult(_PART, "ok", message, details=tuple(agent_settings(limits, names[0])))


def _profile(config: Config, destination: Destination) -> Profile | None:
    settings = config.upstreams.get(destination.upstream)
    if settings is None:
        return None
    try:
        return profiles.get(settings.target, destination.model, overrides=config.overrides)
    except InputError:  # another check reports it
        return None


def agent_settings(limits: ContextRules, name: str) -> Iterator[str]:
    """A line for each agent: the settings for a model of these limits, which it knows by this name."""
    window, output = limits.window, limits.output
    if window is None:
        return
    claude = [f"CLAUDE_CODE_MAX_CONTEXT_TOKENS={window}"]
    claude += [f"CLAUDE_CODE_AUTO_COMPACT_WINDOW={window}"] * (window in CLAUDE_WINDOWS)
    claude += [f"CLAUDE_CODE_MAX_OUTPUT_TOKENS={output}"] * (output is not None)
    yield f"Claude Code  {' '.join(claude)}"
    yield f"Codex        model_context_window = {window}, model_auto_compact_token_limit = {window * 9 // 10}"
    if window < GEMINI_WINDOW:
        threshold = int(1000 * FULL * window / GEMINI_WINDOW) / 1000
        yield f'Gemini CLI   "model": {{"compressionThreshold": {max(threshold, 0.001)}}}'
    size = {"context": window, "input": window, "output": output or min(OPENCODE_OUTPUT, window // 4)}
    shown = "NAME" if is_pattern(name) else name
    yield f'opencode     "models": {{{json.dumps(shown)}: {{"limit": {json.dumps(size)}}}}}'
