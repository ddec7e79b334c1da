"""Gateways that share a store on a server, clients that use them, and what is done to the one or the other meanwhile.

    with stage(url, folder, direct=url) as held:
        held.pass_by(20)                # so many steps of clients, all of which must be right
        with held.disturbance():        # from here to its end a client may notice the store's failure
            server.end(SIGKILL); held.pass_by(10); server.start()
        assert violations(held.end()) == []

The clients are threads; each goes on with its conversations until the end, each turn at another gateway, so that what
one gateway keeps another has to find. `store_checker.py` judges what they saw.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.hostile.echo_upstream import echo_upstream
from support.hostile.store_checker import TOKENS, Read, Seen, Step, marks_in
from support.store.servers import free_port
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway.accounting.usage import read_usage
from toolglot.gateway.config.key_table import digest
from toolglot.store import open_store

STORE_SECONDS = 5
KEYS = {name: f"hostile-{name}-key-0123456789" for name in ("ann", "bob", "cyd")}
LIMITED = "cyd"
"""This client's key has a budget: what it has used is read from the store."""
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
MOST_READS = 60
LATE_AT = re.compile(r'"time":([0-9.]+)')


class ServedGateway:
    """`toolglot serve` on a port of its own, which can be killed and started again."""

    def __init__(self, name: str, folder: Path, config: str) -> None:
        self.name = name
        self.port = free_port()
        self.kills = 0
        self._config = folder / f"{name}.toml"
        self._config.write_text(config)
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["serve", "--config", str(self._config), "--port", str(self.port), "--quiet"]
        environ = {**os.environ, "ECHO_KEY": "any", **{f"KEY_{name}": key for name, key in KEYS.items()}}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "toolglot", *words], stdout=subprocess.PIPE, stderr=log, env=environ
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(b"http"), self.log.read_text()[-2000:]
        wait_until(lambda: self.status("/health") == 200)

    def status(self, path: str) -> int:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get(path)[0]
        return 0

    def get(self, path: str, key: str = "") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {key}"} if key else {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def end(self, how: signal.Signals) -> int | None:
        if self.process is None:
            return None
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            return process.wait(HANG_SECONDS)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def kill(self) -> None:
        self.kills += 1
        self.end(signal.SIGKILL)


def config_text(upstream: str, store: str, seconds: float) -> str:
    """Of a gateway: two clients without limits, one with."""
    named = [name for name in KEYS if name != LIMITED]
    lines = ["[gateway]", f'store = "{store}"', 'log = "json"', 'metrics = "open"', f"store_seconds = {seconds}"]
    lines += ["drain_seconds = 5", "client_keys = [" + ", ".join(f'"env:KEY_{name}"' for name in named) + "]"]
    lines += [f"[keys.{LIMITED}]", f'key = "env:KEY_{LIMITED}"', "tokens_per_day = 1000000000"]
    lines += ["[upstreams.chat]", 'provider = "openai"', 'target = "openai"', f'url = "{upstream}/v1"']
    lines += ['key_env = "ECHO_KEY"', "[upstreams.claude]", 'provider = "anthropic"', f'url = "{upstream}"']
    return "\n".join([*lines, 'key_env = "ECHO_KEY"', ""])


class Stage:
    """Everything that runs."""

    def __init__(self, gateways: list[ServedGateway], direct: str, seed: str) -> None:
        self.gateways = gateways
        self.steps: list[Step] = []
        self.kills = 0
        self.direct = direct
        self._seed = seed
        self._lock = threading.Lock()
        self._epoch = 0
        self._is_disturbed = False
        self._is_over = threading.Event()
        self._failures: list[BaseException] = []
        self._clients = [threading.Thread(target=self._live, args=(name,), name=f"client {name}") for name in KEYS]

    def start(self) -> None:
        for gateway in self.gateways:
            gateway.start()
        for client in self._clients:
            client.start()

    # --- what a test does ---------------------------------------------------------------------------

    def pass_by(self, count: int) -> list[Step]:
        """Wait until each client has done so many more steps; what they were."""
        begun = len(self.steps)

        def is_so() -> bool:
            assert not self._failures, self._failures
            done = [step.client for step in self.steps[begun:]]
            return all(done.count(name) >= count for name in KEYS)

        wait_until(is_so)
        return self.steps[begun:]

    def pass_until_refused(self) -> None:
        """Wait until a caller that needs the store learned that it cannot be used."""
        begun = len(self.steps)

        def is_so() -> bool:
            assert not self._failures, self._failures
            return any(step.is_disturbed and step.status == 503 for step in self.steps[begun:])

        wait_until(is_so)

    def pass_every_kind(self) -> None:
        """Wait until something was continued and something recalled, rightly and undisturbed."""
        begun = len(self.steps)

        def is_so() -> bool:
            assert not self._failures, self._failures
            done = {step.kind for step in self.steps[begun:] if step.status == 200 and not step.is_disturbed}
            return {"continued", "recalled"} <= done

        wait_until(is_so)

    @contextlib.contextmanager
    def disturbance(self) -> Iterator[None]:
        """What is done in the block may be noticed, until every gateway can use the store again."""
        self._mark(is_disturbed=True)
        yield
        wait_until(self._is_well)
        self._mark(is_disturbed=False)

    def kill(self, gateway: ServedGateway) -> None:
        """Kill a gateway and start it again."""
        self.kills += 1
        with self.disturbance():
            gateway.kill()
            gateway.start()

    def _mark(self, *, is_disturbed: bool) -> None:
        with self._lock:
            self._epoch += 1
            self._is_disturbed = is_disturbed

    def _is_well(self) -> bool:
        """What one keeps, the others find, several times: each may have several connections to the store."""
        for number in range(3):
            with contextlib.suppress(OSError, http.client.HTTPException):
                kept = {each.name: self._probe(each, number) for each in self.gateways}
                if all(
                    each.get(f"/v1/responses/{id}", KEYS["ann"])[0] == 200
                    for id in kept.values()
                    for each in self.gateways
                ):
                    continue
            return False
        return all(each.status("/ready") == 200 for each in self.gateways)

    def _probe(self, gateway: ServedGateway, number: int) -> str:
        mark = f"mk-probe{number}-1"
        step = self._send(gateway, "ann", "stored", "/v1/responses", {"model": "chat/echo", "input": mark}, (mark,))
        with self._lock:
            self.steps.append(step)
        return step.id

    # --- clients ------------------------------------------------------------------------------------

    def _live(self, client: str) -> None:
        draw = random.Random(f"{self._seed}/{client}")  # noqa: S311 - a draw that can be repeated
        try:
            for number in itertools.count():
                talk = draw.choice((self._talk_stored, self._talk_signed, self._talk_plain))
                for step in talk(client, f"{self._seed}{client}{number}", draw):
                    with self._lock:
                        self.steps.append(step)
                    if self._is_over.is_set():
                        return
                    if step.status == 0:
                        self._is_over.wait(0.05)  # its gateway is being started: to call again at once does not help
                    if step.status != 200:
                        break
        except BaseException as error:  # noqa: BLE001 - the waiting test gets it
            self._failures.append(error)

    def _at(self, draw: random.Random) -> Iterator[ServedGateway]:
        order = list(self.gateways)
        draw.shuffle(order)
        return itertools.cycle(order)

    def _talk_stored(self, client: str, conversation: str, draw: random.Random) -> Iterator[Step]:
        """A chain of Responses, of which the client sends the last words only."""
        marks: tuple[str, ...] = ()
        previous = ""
        for turn, gateway in zip(range(1, 4), self._at(draw), strict=False):
            marks += (f"mk-{conversation}-{turn}",)
            body = {"model": "chat/echo", "input": marks[-1]} | ({"previous_response_id": previous} if previous else {})
            step = self._send(gateway, client, "continued" if previous else "stored", "/v1/responses", body, marks)
            previous = step.id
            yield step

    def _talk_signed(self, client: str, conversation: str, draw: random.Random) -> Iterator[Step]:
        """Chat with a model that signs its thoughts, which this client cannot carry."""
        marks: tuple[str, ...] = ()
        messages: list[dict[str, Any]] = []
        for turn, gateway in zip(range(1, 4), self._at(draw), strict=False):
            mark = f"mk-{conversation}-{turn}"
            messages.append({"role": "user", "content": mark})
            body = {
                "model": "claude/claude-sonnet-4-5",
                "messages": messages,
                "reasoning_effort": "high",
                "tools": TOOLS,
            }
            expected = (*marks, mark)
            kind = "recalled" if turn > 1 else "plain"
            answers: list[dict[str, Any]] = []
            step = self._send(gateway, client, kind, "/v1/chat/completions", body, expected, answers)
            yield step
            message = answers[0]["choices"][0]["message"]
            messages.append(message)
            calls = message.get("tool_calls", ())
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": "looked"} for call in calls]
            marks = (*expected, f"sg-{conversation}-{turn}")

    def _talk_plain(self, client: str, conversation: str, draw: random.Random) -> Iterator[Step]:
        mark = f"mk-{conversation}-1"
        body = {"model": "chat/echo", "messages": [{"role": "user", "content": mark}]}
        yield self._send(next(self._at(draw)), client, "plain", "/v1/chat/completions", body, (mark,))

    def _send(
        self,
        gateway: ServedGateway,
        client: str,
        kind: str,
        path: str,
        body: dict[str, Any],
        expected: tuple[str, ...],
        answers: list[dict[str, Any]] | None = None,
    ) -> Step:
        with self._lock:
            epoch, was_disturbed, kills = self._epoch, self._is_disturbed, self.kills
        status, data, begun = 0, b"", time.time()
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=HANG_SECONDS)
        try:
            headers = {"authorization": f"Bearer {KEYS[client]}", "content-type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            data, status = response.read(), response.status
        except (ConnectionError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        with self._lock:
            is_disturbed = was_disturbed or self._is_disturbed or epoch != self._epoch
            is_killed = kills != self.kills or (is_disturbed and self.kills > 0)
        answer = json.loads(data) if status else {}
        if answers is not None:
            answers.append(answer)
        _, conversation, turn = expected[-1].split("-")
        return Step(
            client=client,
            conversation=conversation,
            turn=int(turn),
            kind="limited" if client == LIMITED and status == 503 else kind,
            status=status,
            expected=_ordered(expected),
            seen=_ordered(_echoed(answer)) if status == 200 else (),
            error="" if status == 200 else data.decode(),
            tokens=_tokens(answer) if status == 200 else 0,
            is_disturbed=is_disturbed,
            is_killed=is_killed,
            begun=begun,
            ended=time.time(),
            id=answer.get("id", "") if path == "/v1/responses" and status == 200 else "",
        )

    # --- the end ------------------------------------------------------------------------------------

    def end(self) -> Seen:
        """Let the clients finish, look at what is stored, end the gateways, and tell what there was."""
        self._is_over.set()
        for client in self._clients:
            client.join(HANG_SECONDS)
        assert not self._failures, self._failures
        reads = [*self._reads()]
        found = {gateway.name: self._open_requests(gateway) for gateway in self.gateways}
        codes = [gateway.end(signal.SIGTERM) for gateway in self.gateways]
        assert codes == [0] * len(codes), [gateway.log.read_text()[-3000:] for gateway in self.gateways]
        logs = [line for gateway in self.gateways for line in gateway.log.read_text().splitlines()]
        return Seen(
            _with_late(self.steps, logs), reads, asyncio.run(self._stored_tokens()), self.kills > 0, found, logs
        )

    def _reads(self) -> Iterator[Read]:
        kept = [step for step in self.steps if step.id and not step.conversation.startswith("probe")]
        for number, step in enumerate(kept[-MOST_READS:]):
            gateway = self.gateways[number % len(self.gateways)]
            other = next(name for name in KEYS if name != step.client)
            for name in (step.client, other):
                status, data = gateway.get(f"/v1/responses/{step.id}", KEYS[name])
                seen = _ordered(_echoed(json.loads(data))) if status == 200 else ()
                yield Read(step.id, name, name == step.client, status, seen)

    def _open_requests(self, gateway: ServedGateway) -> float:
        found = re.findall(r"^toolglot_open_requests (\S+)$", gateway.get("/metrics")[1].decode(), re.MULTILINE)
        return float(found[0]) - 1  # this one

    async def _stored_tokens(self) -> dict[str, int]:
        names = {digest(key): name for name, key in KEYS.items()}
        store = open_store(self.direct)
        try:
            found = dict.fromkeys(KEYS, 0)
            for row in await read_usage(store):
                if row.client in names:
                    found[names[row.client]] += row.amounts.input + row.amounts.output
            return found
        finally:
            await store.close()

    def close(self) -> None:
        self._is_over.set()
        for gateway in self.gateways:
            gateway.end(signal.SIGKILL)
        for client in self._clients:
            if client.ident is not None:
                client.join(HANG_SECONDS)


def _echoed(answer: dict[str, Any]) -> tuple[str, ...]:
    """The markers that the upstream saw, as the client reads them."""
    if "choices" in answer:
        return marks_in(answer["choices"][0]["message"].get("content") or "")
    parts = (part for item in answer["output"] for part in item.get("content", ()))
    return marks_in(" ".join(part.get("text", "") for part in parts))


def _with_late(steps: list[Step], logs: list[str]) -> list[Step]:
    """A machine may be so busy that a store does not answer in time: the gateway says so, and that is a disturbance."""
    late = [float(LATE_AT.findall(line)[0]) for line in logs if "(store_seconds)" in line and LATE_AT.search(line)]
    return [
        step._replace(is_disturbed=True) if any(step.begun - 1 <= at <= step.ended + 1 for at in late) else step
        for step in steps
    ]


def _ordered(marks: tuple[str, ...]) -> tuple[str, ...]:
    """A signature may stand before or after the words of its turn."""
    return tuple(sorted(marks, key=lambda mark: (int(mark.rpartition("-")[2]), mark)))


def _tokens(answer: dict[str, Any]) -> int:
    assert sum(value for name, value in answer["usage"].items() if name in COUNTED) == TOKENS, answer["usage"]
    return TOKENS


COUNTED = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


@contextlib.contextmanager
def stage(url: str, folder: Path, *, direct: str, seed: str, gateways: int = 2) -> Iterator[Stage]:
    """Gateways on a store at `url`, and clients; `direct` is the store's address for who looks at it in the end."""
    with echo_upstream() as upstream:
        config = config_text(upstream, url, STORE_SECONDS)
        held = Stage([ServedGateway(f"gateway{n}", folder, config) for n in range(gateways)], direct, seed)
        try:
            held.start()
            yield held
        finally:
            held.close()
