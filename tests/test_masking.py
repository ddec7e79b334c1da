"""What is masked as a secret, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from support.counted_work import is_linear, no_hang
from toolglot import masking
from toolglot.masking import (
    SECRET_HEADERS,
    KnownSecrets,
    header_secrets,
    is_secret_name,
    is_secret_parameter,
    mask,
)
from toolglot.profiles.rule_index import all_rules

KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"aws_secret_access_key={KEY}", "aws_secret_access_key=***"),
        (f"awsSecretAccessKey: {KEY}", "awsSecretAccessKey: ***"),
        (f"X-Amz-Security-Token: {KEY}", "X-Amz-Security-Token: ***"),
        ("client_secret=abc123def456", "client_secret=***"),
        ("?api_key=abcdef", "?api_key=***"),
        ("refresh_token: 1//0gabc123def456", "refresh_token: ***"),
        ("BEARER abc123456789xyz", "BEARER ***"),
        ("bearer: abc123456789xyz", "bearer: ***"),
        ("Bearer abcdefghijklmnopqrstuvwxyz", "Bearer ***"),
        ("Bearer\u00a0abc123456789", "Bearer\u00a0***"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic dXNlcjpwYXNz"[:21] + "***"),
        ("Authorization: Token abc123def", "Authorization: Token ***"),
        ("basic dXNlcjpwYXNzd29yZDE=", "basic ***"),
        (f"Key '{HEX}' is invalid", "Key '***' is invalid"),
        (f"azure key {HEX}", "azure key ***"),
        ("key 0f8fad5b-d9cb-469f-a165-70867728950e.", "key ***."),
        (f"Credential=AKIAIOSFODNN7EXAMPLE/2020, Signature={HEX}", "Credential=AKIA***, Signature=***"),
        (f"?X-Amz-Signature={HEX}&x=1", "?X-Amz-Signature=***&x=1"),
        ("https://user:pa55word@host/a", "https://user:***@host/a"),
        ("redis://:pa55word@host", "redis://:***@host"),
        (r'{"body":"{\"key\":\"sk1234567890abcd\"}"}', r'{"body":"{\"key\":\"***\"}"}'),
        (r'"password": "a\b1234"', '"password": "***"'),
        ("password=pa(ss)1", "password=***"),
        ("Cookie: session=abcdef1234; other=1", "Cookie: session=***"),
        ("-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG\\nabc", "-----BEGIN PRIVATE KEY-----\\n***"),
    ],
)
def test_a_secret_is_masked_and_nothing_else(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("use a key (i.e. Authorization: Bearer YOUR_KEY)", "use a key (i.e. Authorization: Bearer ***)"),
        ("Incorrect API key provided: sk-abcDEF1234567890.", "Incorrect API key provided: ***."),
        ("[sk-abcDEF1234567890...]", "[sk-***...]"),
        ("(token=abc12345678)?", "(token=***)?"),
    ],
)
def test_what_stands_around_a_secret_stays(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        *("the key is missing", "token limit", "token limit exceeded: 128000 tokens", "The token count is 12345"),
        *("max_tokens: 1000000000", "input_tokens=12345678", "stop token '<|im_end|>'", "bearer token is missing"),
        *("Basic authentication", "basic auth-based", "co_occurrence", "secret sauce", "passwords are long"),
        *("Duplicate key 'response_format_json_schema_v2'", "model key gpt-4o-mini-2024-07-18"),
        *("key messages.0.content.1.tool_use_id", "signature: messages.1.content.0", "cookie: please"),
        *("http://host:8080/a@b", "https://docs.x.ai/a:b", "password must have 8 characters"),
    ],
)
def test_words_are_not_masked(text: str) -> None:
    assert mask(text) == text


def test_names_of_rules_are_not_masked() -> None:
    names = " ".join(each.entry.id for each in all_rules(None))
    assert "xai-45-efforts" in names
    assert mask(names) == names
    assert mask("key xai-AbCdEfGh0123456789, xai-abc***xyz") == "key xai-***, xai-***"


@pytest.mark.parametrize(
    "piece",
    [
        *("key=", "key ", "bearer:", "Bearer ", "basic aaaa", "signature=aaaa", "authorization: ", "secret_access_"),
        *("://", "://a:", "://aaaaaaaaaa:bbbbbbbb", "cookie: a", "-----BEGIN PRIVATE KEY-----", "-----BEGIN "),
        *("api key: ", "api_key=", "password", "\\", "'", "key aaaaaaaaaaaaaaaaaaaa", "eyJaaaaaaaa."),
    ],
)
def test_the_work_is_linear(piece: str) -> None:
    assert is_linear(lambda length: lambda: mask(piece * (length // len(piece))), 5_000)
    with no_hang():
        mask(piece * (400_000 // len(piece)))


# --- known secrets ----------------------------------------------------------------------------------


def test_known_secrets_are_masked_in_strings_and_bytes_the_longest_first() -> None:
    secrets = KnownSecrets(["a-secret-of-ours", "a-secret-of-ours-too", "short", ""])
    assert secrets.mask("a-secret-of-ours-too, a-secret-of-ours, short") == "***, ***, short"
    assert secrets.mask_bytes(b"a-secret-of-ours-too, short") == b"***, short"
    assert KnownSecrets([]).mask("text") == "text"
    assert KnownSecrets([]).mask_bytes(b"text") == b"text"


@pytest.mark.parametrize(
    "form",
    ['a "key" of/ours', 'a \\"key\\" of/ours', "a%20%22key%22%20of%2Fours", "YSAia2V5IiBvZi9vdXJz", 'sruo/fo "yek" a'],
)
def test_known_secrets_are_masked_in_their_usual_encodings(form: str) -> None:
    assert KnownSecrets(['a "key" of/ours'], encoded=True).mask(f"<{form}>") == "<***>"


def test_headers_with_the_names_of_secrets_give_their_values_without_a_scheme() -> None:
    headers = {"Authorization": "Bearer abc", "X-Team-Token": "def", "accept": "text/html"}
    assert [*header_secrets(headers)] == ["abc", "def"]
    assert all(is_secret_name(name) for name in SECRET_HEADERS)
    assert [is_secret_parameter(name) for name in ("sslpassword", "target_session_attrs")] == [True, False]


def test_secrets_are_masked_in_one_module_only() -> None:
    """No other module writes the mask, or has patterns for what a key looks like."""
    root = Path(toolglot.__file__).parent
    for file in root.rglob("*.py"):
        if file.name != "masking.py":
            assert '"***"' not in file.read_text(), file
            assert "gsk_" not in file.read_text(), file


PARTS = (
    *("sk-abc123456789", "api_key=", "api key is ", "'", '"', "token: ", "Bearer ", "abc12345678901234567890", "\\"),
    *("password", "=hunter2x9", "id token:", "id_token", "eyJabcdefghijkl.abcdef", " ", "\n", "authorization: "),
    *("Basic ", "QWxhZGRpbjpvcGVu", "://user:pass1@h", "cookie: a=", "signature=", "secret access key", "x", "key "),
    *("account-key:", "Private Key=", "0123456789abcdef0123456789", "co_", "AKIA1234567890", "ya29.", "AQ.", "tgk_"),
    *("-----BEGIN RSA PRIVATE KEY-----", "MIIabcdefghijklmnop", "ſecret=abcdefg1", "\u212aey: abcdefgh1", "é", "İ"),
    *("subscription key:", "refreshtoken=", "csk-", "auth:", "sk_live_abcdefgh", "tgp_v1_abcdef12", "api-"),
)


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=40))
def test_a_long_text_is_masked_as_a_short_one_is(parts: list[str]) -> None:
    text = "".join(parts)
    long = text.ljust(masking._LONG)
    assert mask(long) == masking._SECRETS.sub(masking._mask_match, long)
