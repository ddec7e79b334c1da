"""Which proxy stands before a host."""

from __future__ import annotations

import pytest

from toolglot import InputError
from toolglot.upstream.http.proxies import Proxies, host_and_port

PROXY = "http://proxy.example:3128"


def between(environ: dict[str, str], url: str = "https://api.example.com", port: int | None = None) -> str | None:
    scheme, _, host = url.partition("://")
    return Proxies(None, environ).between(scheme, host, port)


def test_the_scheme_names_the_variable_and_small_letters_come_first() -> None:
    assert between({"HTTPS_PROXY": PROXY}) == PROXY
    assert between({"HTTPS_PROXY": "http://other", "https_proxy": PROXY}) == PROXY
    assert between({"HTTP_PROXY": PROXY}) is None
    assert between({"HTTP_PROXY": PROXY}, "http://api.example.com") == PROXY
    assert between({"ALL_PROXY": PROXY}) == PROXY
    assert between({"https_proxy": "", "HTTPS_PROXY": PROXY}) == PROXY
    assert between({}) is None
    assert between({"HTTPS_PROXY": "proxy.example:3128"}) == PROXY


@pytest.mark.parametrize("host", ["localhost", "model.localhost", "127.0.0.1", "127.1.2.3", "::1", "LOCALHOST."])
def test_this_machine_is_never_behind_a_proxy_of_the_environment(host: str) -> None:
    assert between({"ALL_PROXY": PROXY}, f"http://{host}") is None


@pytest.mark.parametrize(
    ("left_out", "host", "is_direct"),
    [
        ("*", "api.example.com", True),
        ("example.com", "api.example.com", True),
        (".example.com", "api.example.com", True),
        ("*.example.com", "API.example.com", True),
        (" other.org , example.com ", "example.com", True),
        ("example.com:443", "api.example.com", True),
        ("example.com:80", "api.example.com", False),
        ("ample.com", "api.example.com", False),
        ("", "api.example.com", False),
        (",", "api.example.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:443", "10.1.2.3", True),
        ("10.1.2.3:80", "10.1.2.3", False),
        ("fd00::/8", "fd12::1", True),
        ("[fd12::1]:443", "fd12::1", True),
        ("10.0.0.0/8", "api.example.com", False),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(left_out: str, host: str, is_direct: bool) -> None:
    assert (between({"ALL_PROXY": PROXY, "NO_PROXY": left_out}, f"https://{host}") is None) == is_direct


def test_a_named_proxy_is_for_everything_and_an_empty_one_for_nothing() -> None:
    environ = {"ALL_PROXY": "http://other", "NO_PROXY": "*"}
    assert Proxies(PROXY, environ).between("http", "127.0.0.1", 80) == PROXY
    assert Proxies("", {"ALL_PROXY": PROXY}).between("https", "api.example.com", None) is None


@pytest.mark.parametrize("proxy", ["socks5://u:s3cret@host", "http://", "http://host:s3cret", "http://[s3cret"])
def test_what_is_no_http_proxy_is_refused_without_its_password(proxy: str) -> None:
    with pytest.raises(InputError) as refused:
        Proxies(proxy, {})
    assert "s3cret" not in str(refused.value)
    with pytest.raises(InputError) as refused:
        between({"HTTPS_PROXY": proxy})
    assert refused.value.path == "HTTPS_PROXY"


def test_a_proxy_is_shown_without_name_and_password() -> None:
    assert host_and_port("http://user:pass@proxy.example:3128") == "proxy.example:3128"
    assert host_and_port("http://user:pass@proxy.example") == "proxy.example"


def test_a_host_is_looked_up_once() -> None:
    environ = {"ALL_PROXY": PROXY}
    proxies = Proxies(None, environ)
    assert proxies.between("https", "api.example.com", None) == PROXY
    environ.clear()
    assert proxies.between("https", "api.example.com", None) == PROXY
    assert proxies.between("https", "other.example.com", None) is None
