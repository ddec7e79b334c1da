"""What ops/ has for several gateways: manifests for Kubernetes, a compose file, nginx and Envoy; nginx itself is run in
tests/hostile/test_rolling_restarts.py.

The manifests are checked against the schemas of Kubernetes, and all files against the gateway: its paths, ports,
settings and how long it takes to stop.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from toolglot.cli.main import build_parser
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import Config, parse_config
from toolglot.gateway.endpoints.table import find

OPS = Path(__file__).parents[3] / "ops"
KUBERNETES = OPS / "kubernetes"
MANIFESTS = sorted(file.name for file in KUBERNETES.glob("*.yaml") if file.name != "kustomization.yaml")
VERSIONS = ("1.30", "1.37")
KEYS = {"TOOLGLOT_STORE": "redis://:p@redis:6379/0", "TOOLGLOT_CLIENT_KEY": "k" * 20, "OPENAI_API_KEY": "k" * 20}
MIB = 1024 * 1024


def read(name: str) -> Any:
    return yaml.safe_load((OPS / name).read_text("utf-8"))


def config_of(name: str) -> Config:
    return parse_config(ConfigText(name, (OPS / name).read_text("utf-8")), KEYS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_has_the_form_that_kubernetes_reads(name: str, version: str) -> None:
    kubernetes_validate.validate(read(f"kubernetes/{name}"), version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_manifest_would_be_noticed(version: str) -> None:
    wrong = read("kubernetes/deployment.yaml")
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_the_kustomization_has_every_file_and_nothing_else() -> None:
    kustomization = read("kubernetes/kustomization.yaml")
    assert kustomization["kind"] == "Kustomization"
    assert sorted(kustomization["resources"]) == MANIFESTS
    [generated] = kustomization["configMapGenerator"]
    assert generated["files"] == ["toolglot.toml"]
    deployment = read("kubernetes/deployment.yaml")
    assert deployment["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] == generated["name"]
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert [each["name"] for each in kustomization["images"]] == [image]
    assert kustomization["images"][0]["newName"].endswith("/toolglot"), "docs/scale.md replaces it"
    assert kustomization["namespace"] == read("kubernetes/namespace.yaml")["metadata"]["name"]


def test_the_deployment_fits_the_gateway() -> None:
    config = config_of("kubernetes/toolglot.toml").gateway
    deployment = read("kubernetes/deployment.yaml")["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert container["ports"][0]["containerPort"] == config.port
    assert pod["terminationGracePeriodSeconds"] > config.lame_duck_seconds + config.drain_seconds + 5
    readiness = container["readinessProbe"]
    assert config.lame_duck_seconds > 2 * readiness["periodSeconds"] * readiness["failureThreshold"]
    for name, path in (("readinessProbe", "/ready"), ("livenessProbe", "/health"), ("startupProbe", "/health")):
        probe = container[name]
        assert probe["httpGet"] == {"path": path, "port": "http"}
        assert find("GET", path, {}, {}) is not None
        assert probe["timeoutSeconds"] > 2 or path == "/health", "/ready responds within two seconds"
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Gi")) * 1024 * MIB
    assert limit > 150_000_000 + 8 * config.max_bytes_in_flight
    build_parser(["serve"]).parse_args(container["args"])
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    user = re.search(r"USER (\d+):(\d+)", (OPS / "Containerfile").read_text("utf-8"))
    assert user is not None
    security = pod["securityContext"]
    assert [str(security["runAsUser"]), str(security["runAsGroup"])] == [*user.groups()]


def test_service_budget_and_network_policy_are_about_the_pods_of_the_deployment() -> None:
    labels = read("kubernetes/deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    assert read("kubernetes/deployment.yaml")["spec"]["selector"]["matchLabels"] == labels
    service, policy = read("kubernetes/service.yaml")["spec"], read("kubernetes/network-policy.yaml")["spec"]
    assert service["selector"] == labels
    assert service["ports"][0]["targetPort"] == "http"
    assert read("kubernetes/disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == labels
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["ingress"][0]["ports"] == [{"protocol": "TCP", "port": 8400}]


def test_the_compose_file_runs_two_gateways_with_one_store_behind_nginx() -> None:
    compose, config = read("compose.yaml"), config_of("compose.toml").gateway
    services = compose["services"]
    assert set(services) == {"one", "two", "nginx", "redis"}
    for name in ("one", "two"):
        gateway = services[name]
        build_parser(["serve"]).parse_args(gateway["command"])
        assert gateway["volumes"] == ["./compose.toml:/etc/toolglot/toolglot.toml:ro"]
        assert int(gateway["stop_grace_period"].removesuffix("s")) > config.lame_duck_seconds + config.drain_seconds + 5
        assert (OPS / "compose.yaml").parent.joinpath(gateway["build"]["dockerfile"]).name == "Containerfile"
        assert f"{name}:{config.port}" in services["nginx"]["command"][2]
    assert config.store == "redis://redis:6379/0"
    assert services["nginx"]["volumes"] == ["./nginx.conf:/etc/toolglot/nginx.conf:ro"]
    assert set(compose["volumes"]) == {"redis"}


def test_a_proxy_lets_go_of_a_gateway_before_it_stops() -> None:
    nginx = (OPS / "nginx.conf").read_text("utf-8")
    found = re.search(r"keepalive_timeout (\d+)s;", nginx)
    assert found is not None
    for name in ("compose.toml", "kubernetes/toolglot.toml"):
        assert int(found[1]) < config_of(name).gateway.lame_duck_seconds
    assert len(re.findall(r"server [\d.:]+ max_fails=0;", nginx)) == 2
    assert "proxy_next_upstream error;" in nginx
    assert "proxy_buffering off;" in nginx


def test_load_balancers_pass_on_nothing_that_is_internal() -> None:
    nginx, envoy = ((OPS / name).read_text("utf-8") for name in ("nginx.conf", "envoy.yaml"))
    (closed,) = re.findall(r"location ~ (\S+) \{\s+return 404;", nginx)
    for path in ("/metrics", "/toolglot/requests", "/inspector", "/inspector/api/requests"):
        assert re.match(closed, path)
    assert not re.match(closed, "/v1/messages")
    assert re.findall(r'prefix: "([^"]+)"\}\s+direct_response', envoy) == ["/metrics", "/inspector", "/toolglot/"]


def test_envoy_asks_whether_a_gateway_is_ready_and_sends_nothing_twice() -> None:
    envoy = read("envoy.yaml")["static_resources"]
    [cluster], [listener] = envoy["clusters"], envoy["listeners"]
    [check] = cluster["health_checks"]
    assert check["http_health_check"] == {"path": "/ready"}
    assert check["unhealthy_threshold"] == 1
    [manager] = listener["filter_chains"][0]["filters"]
    [host] = manager["typed_config"]["route_config"]["virtual_hosts"]
    route = host["routes"][-1]["route"]
    assert route["cluster"] == cluster["name"] == cluster["load_assignment"]["cluster_name"]
    assert (route["timeout"], route["retry_policy"]["retry_on"]) == ("0s", "connect-failure")
