"""Configurations written for one test, and the mistakes found in them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import Config, ConfigError, parse_config

KEY = "sk-live-0123456789abcdef"
ENV = {"HOME": "/home/user", "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": "sk-ant-0123456789", "TEAM": "blue"}


def config(text: str, **more: str) -> Config:
    return parse_config(ConfigText("toolglot.toml", text), {**ENV, **more})


def wrong(text: str, environ: Mapping[str, str] = ENV) -> ConfigError:
    """The error that a text gives, in which no key is."""
    with pytest.raises(ConfigError) as caught:
        parse_config(ConfigText("toolglot.toml", text), environ)
    assert KEY not in str(caught.value)
    return caught.value
