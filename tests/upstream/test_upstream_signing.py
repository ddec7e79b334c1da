"""Signatures of AWS, held against botocore's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from toolglot import InputError
from toolglot.upstream import AwsCredentials, join_url
from toolglot.upstream.addresses import _segment
from toolglot.upstream.aws_signing import region_of, signing_headers

ROOT = "https://bedrock-runtime.eu-west-1.amazonaws.com"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105  the example of AWS's own pages
WHO = AwsCredentials(access_key="AKIAEXAMPLE", secret_key=SECRET)
printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)


def signed_by_botocore(url: str, headers: dict[str, str], body: bytes, who: AwsCredentials) -> dict[str, str]:
    request = AWSRequest("POST", url, headers=headers, data=body)
    credentials = Credentials(who.access_key, who.secret_key, who.session_token or None)
    SigV4Auth(credentials, "bedrock", "eu-west-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def check(url: str, headers: dict[str, str], body: bytes, who: AwsCredentials = WHO) -> None:
    """The same headers, at the time at which botocore signed."""
    theirs = signed_by_botocore(url, headers, body, who)
    now = datetime.strptime(theirs["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    ours = signing_headers(
        method="POST", url=url, headers=headers, body=body, credentials=who, region="eu-west-1", now=now
    )
    assert {**headers, **ours} == theirs


@pytest.mark.parametrize("model", ["amazon.nova-pro-v1:0", "arn:aws:bedrock:eu-west-1:1:x/y", "a b%c"])
@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzE//+="])
def test_a_request_is_signed_as_botocore_signs_it(model: str, token: str) -> None:
    headers = {"content-type": "application/json"}
    check(f"{ROOT}/model/{_segment(model)}/converse", headers, b'{"a": 1}', replace(WHO, session_token=token))


def test_a_port_and_a_query_are_signed_too() -> None:
    check("http://127.0.0.1:8080/model/m/converse?b=2&a=1&a=%20x", {}, b"")
    check("https://127.0.0.1:443/", {"content-type": " application/json   a "}, b"x")


@pytest.mark.law
@settings(max_examples=50)
@given(st.text(max_size=40), st.binary(max_size=50), printable.filter(lambda text: text.strip() == text))
def test_whatever_the_model_and_the_body_botocore_agrees(model: str, body: bytes, kind: str) -> None:
    name = _segment(model.encode("utf-8", "replace").decode() or "m")
    check(join_url(ROOT, f"/model/{name}/converse"), {"content-type": kind or "text/plain"}, body)


def test_only_what_no_proxy_changes_is_signed() -> None:
    headers = {"content-type": "application/json", "user-agent": "x", "accept": "y", "x-amz-meta": "z"}
    ours = signing_headers(
        method="POST", url=ROOT, headers=headers, body=b"", credentials=WHO, region="eu-west-1", now=0.0
    )
    assert "SignedHeaders=content-type;host;x-amz-date;x-amz-meta," in ours["authorization"]
    assert WHO.secret_key not in str(ours)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://vpce-1-2.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com/x", "ap-southeast-2"),
        ("http://127.0.0.1:8000/bedrock", "sa-east-1"),
    ],
)
def test_the_region_is_that_of_the_address_or_of_the_credentials(url: str, region: str) -> None:
    assert region_of(url, replace(WHO, region="sa-east-1")) == region


def test_a_missing_region_is_an_error() -> None:
    with pytest.raises(InputError, match="AWS_REGION"):
        region_of("https://bedrock.example", WHO)
