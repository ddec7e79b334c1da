"""Gateways behind nginx, as documented, are restarted one after another under load: no request fails.

Real processes: nginx, `toolglot serve` twice, and clients on kept connections that send requests which nginx may not
send twice.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.hostile.echo_upstream import echo_upstream
from support.hostile.store_stage import KEYS, ServedGateway, config_text
from support.long_form import IS_LONG
from support.store.servers import free_port
from support.waiting import HANG_SECONDS, wait_until

OPS = Path(__file__).parents[2] / "ops"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
CLIENTS = 8
RESTARTS = 20 if IS_LONG else 2
LAME_DUCK = 3
STORE_SECONDS = 5


@contextmanager
def nginx(folder: Path, ports: list[int]) -> Iterator[int]:
    """nginx with the configuration of `ops`, in front of gateways on these ports."""
    if NGINX is None:
        pytest.skip("nginx is not installed (Debian: nginx-light)")
    port = free_port()
    text = (OPS / "nginx.conf").read_text().replace("listen 8400;", f"listen 127.0.0.1:{port};")
    for documented, own in zip((8401, 8402), ports, strict=True):
        assert f"127.0.0.1:{documented} " in text
        text = text.replace(f"127.0.0.1:{documented} ", f"127.0.0.1:{own} ")
    text = re.sub(r"worker_rlimit_nofile.*|worker_connections.*", "", text)  # as many as this machine allows
    text = text.replace(
        "http {",
        "http {\n"
        + "".join(
            f"    {name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        ),
        1,
    )
    whole = f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\n{text}"
    (folder / "nginx.conf").write_text(whole)
    words = [NGINX, "-p", str(folder), "-e", str(folder / "nginx.log"), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(words)
    try:
        wait_until(lambda: status_of(port, "GET", "/health") == 200)
        yield port
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(HANG_SECONDS)


def status_of(port: int, method: str, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_SECONDS)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


class Load:
    """Clients that send one request after another, until they are stopped."""

    def __init__(self, port: int) -> None:
        self.statuses: Counter[int | str] = Counter()
        self._port = port
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(HANG_SECONDS)

    def pass_by(self, count: int) -> None:
        """Wait until so many more requests were answered."""
        end = self.statuses.total() + count
        wait_until(lambda: self.statuses.total() >= end)

    def _run(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=HANG_SECONDS)
        headers = {"authorization": f"Bearer {KEYS['ann']}", "content-type": "application/json"}
        body = {"model": "chat/echo", "messages": [{"role": "user", "content": f"mk-load{number}-1"}]}
        while not self._is_over.is_set():
            try:
                connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
                with connection.getresponse() as response:
                    response.read()
                    self.statuses[response.status] += 1
            except (OSError, http.client.HTTPException) as error:
                self.statuses[type(error).__name__] += 1
                connection.close()
        connection.close()


def test_restarts_one_after_another_fail_no_request(tmp_path: Path) -> None:
    with echo_upstream() as upstream:
        config = config_text(upstream, str(tmp_path / "store.db"), STORE_SECONDS)
        config = config.replace("drain_seconds = 5", f"drain_seconds = 5\nlame_duck_seconds = {LAME_DUCK}")
        gateways = [ServedGateway(name, tmp_path, config) for name in ("one", "two")]
        try:
            for gateway in gateways:
                gateway.start()
            with nginx(tmp_path, [gateway.port for gateway in gateways]) as port, Load(port) as load:
                load.pass_by(20)
                for number in range(RESTARTS):
                    gateway = gateways[number % len(gateways)]
                    assert gateway.end(signal.SIGTERM) == 0
                    load.pass_by(20)
                    gateway.start()
                    load.pass_by(20)
            assert set(load.statuses) == {200}, load.statuses
        finally:
            for gateway in gateways:
                gateway.end(signal.SIGTERM)
