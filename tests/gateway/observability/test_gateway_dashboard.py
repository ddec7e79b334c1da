"""The Grafana dashboard: what Grafana's own model of one knows, with expressions that parse, of metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import bargauge, common, stat, timeseries
from grafana_foundation_sdk.models.dashboard import Dashboard

from support.gateway.mixed_traffic import SCRIPT, make_traffic, samples
from support.gateway.served_gateway import gateway
from toolglot.simulator import serve

FILE = Path(__file__).parents[3] / "ops/grafana/toolglot.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
OPTIONS = {"timeseries": timeseries.Options, "stat": stat.Options, "bargauge": bargauge.Options}
SET_BY_GRAFANA = {"$__rate_interval": "5m", "$__range": "3h", "$job": "x", "$instance": "x", "$upstream": "x"}
SET_BY_PROMETHEUS = {"job", "instance"}
COLUMNS = 24

Exposed = dict[str, set[str]]


@pytest.fixture(scope="module")
def exposed() -> Iterator[Exposed]:
    """The names of what `/metrics` says after traffic of every kind, and the labels of each."""
    with serve(SCRIPT) as simulated, gateway(simulated) as served:
        make_traffic(served)
        found: Exposed = {}
        for sample in samples(served):
            found.setdefault(sample.name, set(SET_BY_PROMETHEUS)).update(sample.labels)
        yield found


def test_grafanas_model_of_a_dashboard_knows_every_field() -> None:
    assert not [*_lost(DASHBOARD, _through_model(Dashboard, DASHBOARD))]
    for panel in PANELS:
        options = OPTIONS[panel["type"]]
        assert not [*_lost(panel["options"], _through_model(options, panel["options"]), panel["title"])]
        custom = panel["fieldConfig"]["defaults"].get("custom", {})
        assert not [*_lost(custom, _through_model(common.GraphFieldConfig, custom), panel["title"])]


def _through_model(model: Any, plain: Any) -> Any:
    return json.loads(JSONEncoder(sort_keys=True).encode(model.from_json(plain)))


def _lost(original: Any, kept: Any, at: str = "$") -> Iterator[str]:
    """What a model does not know, and so leaves out when it writes what it has read."""
    if isinstance(original, dict):
        for key, value in original.items():
            if key in kept:
                yield from _lost(value, kept[key], f"{at}.{key}")
            elif value is not None:
                yield f"{at}.{key}"
    elif isinstance(original, list):
        assert len(original) == len(kept)
        for i, value in enumerate(original):
            yield from _lost(value, kept[i], f"{at}[{i}]")
    elif original != kept:
        yield f"{at}: {original!r} became {kept!r}"


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    wrong = {**DASHBOARD, "titel": "x", "panels": [{**PANELS[0], "unit": "s"}]}
    assert {*_lost(wrong, _through_model(Dashboard, wrong))} == {"$.titel", "$.panels[0].unit"}


def test_panels_have_ids_of_their_own_and_do_not_cover_each_other() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= COLUMNS
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_panel_asks_the_source_that_is_chosen() -> None:
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert names == {"datasource", "job", "instance", "upstream"}
    for panel in PANELS:
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)) > 0
        for source in (panel["datasource"], *(target["datasource"] for target in panel["targets"])):
            assert source == {"type": "prometheus", "uid": "${datasource}"}
    used = {name for text in _expressions() for name in re.findall(r"\$\{?(\w+)", text)}
    assert used <= names | {name[1:] for name in SET_BY_GRAFANA}


def test_every_expression_parses_and_asks_for_metrics_and_labels_that_there_are(exposed: Exposed) -> None:
    for text in _expressions():
        selectors = [*_selectors(_parsed(text))]
        assert selectors, text
        for name, labels in selectors:
            assert name in exposed, f"there is no {name}: {text}"
            assert labels <= exposed[name], f"{name} has no {labels - exposed[name]}: {text}"


def test_every_metric_of_the_gateway_is_in_the_dashboard(exposed: Exposed) -> None:
    families = {_family(name) for text in _expressions() for name, _ in _selectors(_parsed(text))}
    variables = {_family(name) for name in re.findall(r"label_values\((\w+)", json.dumps(DASHBOARD["templating"]))}
    assert variables <= {_family(name) for name in exposed}
    not_shown = {"process_virtual_memory_bytes"}
    assert {_family(name) for name in exposed} - families - variables == not_shown


def test_labels_in_legends_are_those_that_the_expression_leaves(exposed: Exposed) -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert wanted <= _left(_parsed(target["expr"]), exposed), (panel["title"], target["legendFormat"])


def test_an_expression_that_does_not_parse_is_found() -> None:
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        _parsed("sum by (x (rate(a[$__rate_interval]))")


def test_the_alerts_of_the_docs_ask_for_what_there_is(exposed: Exposed) -> None:
    page = (FILE.parents[2] / "docs/observability.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    rules = [rule for block in blocks for group in block.get("groups", ()) for rule in group["rules"]]
    assert len(rules) == 3
    for rule in rules:
        for name, labels in _selectors(_parsed(rule["expr"])):
            assert labels <= exposed[name], rule["alert"]


def _expressions() -> list[str]:
    own = [target["expr"] for panel in PANELS for target in panel["targets"]]
    return [*own, *(annotation["expr"] for annotation in DASHBOARD["annotations"]["list"])]


def _parsed(text: str) -> Any:
    for name, value in SET_BY_GRAFANA.items():
        text = text.replace(name, value)
    return promql_parser.parse(text)


def _selectors(node: Any) -> Iterator[tuple[str, set[str]]]:
    """The metrics in an expression, with the labels by which each is chosen or grouped."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node.name or "", {matcher.name for matcher in node.matchers.matchers}
    elif isinstance(node, promql_parser.AggregateExpr):
        grouped = set(node.modifier.labels) if node.modifier is not None else set()
        for name, labels in _selectors(node.expr):
            yield name, labels | grouped
    else:
        for child in _children(node):
            yield from _selectors(child)


def _children(node: Any) -> list[Any]:
    if isinstance(node, promql_parser.BinaryExpr):
        return [node.lhs, node.rhs]
    if isinstance(node, promql_parser.Call):
        return list(node.args)
    if isinstance(node, promql_parser.MatrixSelector):
        return [node.vector_selector]
    if isinstance(node, promql_parser.ParenExpr):
        return [node.expr]
    assert isinstance(node, promql_parser.NumberLiteral), node
    return []


def _left(node: Any, exposed: Exposed) -> set[str]:
    """The labels that the answer to an expression has."""
    if isinstance(node, promql_parser.AggregateExpr):
        return set(node.modifier.labels) if node.modifier is not None else _topmost(node, exposed)
    if isinstance(node, promql_parser.VectorSelector):
        return exposed[node.name or ""]
    if isinstance(node, promql_parser.Call) and node.func.name == "histogram_quantile":
        return _left(node.args[1], exposed) - {"le"}
    return set().union(*(_left(child, exposed) for child in _children(node)))


def _topmost(node: Any, exposed: Exposed) -> set[str]:
    """Without `by`, only those that choose among their series keep any labels."""
    return _left(node.expr, exposed) if str(node.op) == "topk" else set()


def _family(name: str) -> str:
    return re.sub(r"_(?:bucket|sum|count)$", "", name)
