"""The kind of a failure, by its status, code and text.

A code with one meaning decides. If status and code leave it open (a 400 may be anything), the first known phrase of the
text decides, so that a writer of failures can put a clear phrase in front. Otherwise the status decides, and without an
error status the vague codes.

Law: tables only. The text is read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, get_args

from toolglot.conversation import FailureKind

KINDS: Final[tuple[FailureKind, ...]] = get_args(FailureKind)

CODES: Final[dict[FailureKind, str]] = {
    "bad_request": "thread_unsupported_request",
    "auth": "authentication_error invalid_api_key invalid_authentication_error incorrect_api_key_error unauthenticated "
    "unauthorized unauthorized_error api_key_invalid unrecognizedclientexception expiredtokenexception "
    "invalidsignatureexception missingauthenticationtokenexception incompletesignatureexception invalid_token "
    "token_expired wrong_api_key",
    "permission": "permission_error permission_denied permission_denied_error request_forbidden "
    "unsupported_country_region_territory access_terminated_error",
    "billing": "billing_error insufficient_quota insufficient_user_quota exceeded_current_quota_error "
    "billing_hard_limit_reached billing_not_active billing_disabled insufficient_balance insufficient_credits "
    "payment_required arrearage enforced_spend_limit_reached usage_not_included 1113",
    "not_found": "not_found_error not_found model_not_found resource_not_found_error resourcenotfoundexception "
    "deploymentnotfound invalid_model",
    "too_large": "request_too_large payload_too_large requestentitytoolargeexception "
    "request_body_too_large_after_decoding",
    "context_overflow": "context_length_exceeded exceed_context_size_error context_window_exceeded context_overflow "
    "model_max_prompt_tokens_exceeded too_many_prompt_tokens too_many_tokens 1261",
    "rate_limit": "rate_limit_error rate_limit_exceeded rate_limited rate_limit_reached_error too_many_requests "
    "ramp_limit_exceeded throttlingexception throttling throttling.ratequota throttling.allocationquota "
    "toomanyrequestsexception servicequotaexceededexception limit_burst_rate usage_limit_reached 1302 1303 1304 1305",
    "overloaded": "overloaded_error engine_overloaded_error server_is_overloaded slow_down unavailable "
    "unavailable_error serviceunavailableexception service_unavailable service_unavailable_error "
    "modelnotreadyexception model_overloaded server_overloaded insufficient_system_resource",
    "content_filter": "content_filter content_policy_violation data_inspection_failed datainspectionfailed "
    "image_content_policy_violation bio_policy cyber_policy misalignment_policy_violation "
    "responsibleaipolicyviolation moderation_blocked prohibited_content safety blocklist spii image_safety 1301",
    "timeout": "timeout_error timeout request_timeout gateway_timeout deadline_exceeded modeltimeoutexception "
    "vector_store_timeout",
    "unreachable": "upstream_unreachable",
    "bad_output": "tool_use_failed json_validate_failed output_parse_failed modelerrorexception "
    "modelstreamerrorexception model_output_error malformed_function_call malformed_response unexpected_tool_call "
    "too_many_tool_calls",
}
"""Codes that mean one thing, whatever the status."""

VAGUE_CODES: Final[dict[FailureKind, str]] = {
    "bad_request": "invalid_request_error invalid_request bad_request badrequesterror invalid_argument "
    "failed_precondition out_of_range validationexception conflictexception invalid_prompt invalid_image "
    "invalid_image_format invalid_base64_image invalid_image_url image_too_large image_too_small image_parse_error "
    "unsupported_value invalid_value",
    "permission": "accessdeniedexception forbidden",
    "rate_limit": "resource_exhausted requests tokens",
    "server": "api_error server_error internal internal_error internal_server_error internalserverexception "
    "internalfailure unknown",
}
"""Codes that say no more than a status; they count where there is no error status."""

STATUSES: Final[dict[int, FailureKind]] = {
    401: "auth",
    402: "billing",
    403: "permission",
    404: "not_found",
    405: "not_found",
    407: "auth",
    408: "timeout",
    410: "not_found",
    413: "too_large",
    424: "bad_output",
    429: "rate_limit",
    498: "auth",
    499: "timeout",
    501: "bad_request",
    503: "overloaded",
    504: "timeout",
    522: "timeout",
    524: "timeout",
    529: "overloaded",
    598: "timeout",
    599: "timeout",
}
"""Other statuses mean `bad_request` from 400 and `server` from 500."""

PHRASES: Final[dict[FailureKind, str]] = {
    "bad_request": "the request was refused",
    "auth": "invalid API key",
    "permission": "permission denied",
    "billing": "insufficient credits",
    "not_found": "the model was not found",
    "too_large": "request too large",
    "context_overflow": "prompt is too long",
    "rate_limit": "rate limit",
    "overloaded": "overloaded",
    "content_filter": "blocked by content filter",
    "timeout": "timed out",
    "unreachable": "the provider cannot be reached",
    "server": "the provider failed",
    "bad_output": "the model wrote an unusable answer",
}
"""Put in front of a message whose text does not show its kind."""

_TEXTS: Final[dict[FailureKind, tuple[str, ...]]] = {
    "context_overflow": (
        "prompt (?:is )?too long",
        "input is too long",
        "inputs? (?:length )?(?:is |are )?longer than",
        "max(?:imum)? (?:context|prompt|model) (?:length|size|window|limit)",
        "context[ _](?:length|window|size)[ _](?:is |was |limit )?exceed",
        "exceed(?:s|ed)? (?:the )?(?:available |max |maximum |model'?s? |model's maximum )?context",
        "exceed_context_size",
        "contextwindowexceeded",
        "context window exceeds",
        "context exceeds your deployment",
        "input token length too long",
        "model only supports up to",
        "more than max tokens allowed",
        "longer than the model'?s? (?:context|maximum)",
        "context size has been exceeded",
        "(?:input|prompt) token count.{0,80}exceeds",
        "exceeds the maximum number of tokens",
        "input tokens exceed",
        "total length of all messages is too long",
        "too many total text bytes",
        "exceeded model token limit",
        "too many (?:input )?tokens",
        "greater than the context length",
        "reduce the length of the (?:messages|prompt|input)",
        "range of input length should be",
        "prompt exceeds max",
        "tokens \\+ `max_new_tokens` must be",
    ),
    "billing": (
        "credit balance is too low",
        "insufficient[ _](?:balance|quota|credits?|funds|account balance)",
        "(?:used|consumed) all (?:of )?(?:your |its |the )?(?:available )?credits",
        "(?:requires|add) more credits",
        "out of credits",
        "prepa(?:id|yment) credits? (?:are|is) depleted",
        "credits? (?:are|is) (?:depleted|exhausted)",
        "billing (?:hard limit|is disabled|is not|not active)",
        "enable billing",
        "check your billing",
        "payment (?:method|required|instrument)",
        "invalid_payment_instrument",
        "spend(?:ing)? (?:limit|cap)",
        "余额不足",
    ),
    "auth": (
        "(?:invalid|incorrect|missing|expired) (?:x-)?api[- ]key",
        "api[ _]key (?:is )?(?:not valid|invalid|expired|missing|not found)",
        "invalid (?:authentication|authorization|bearer token|token)",
        "authentication (?:fails|failed)",
        "unauthorized",
        "no auth credentials",
        "security token included in the request is",
    ),
    "content_filter": (
        "content[ _-](?:filter|management policy|policy)",
        "safety (?:system|filter|reasons)",
        "prompt was blocked",
        "blocked (?:by|due to|for).{0,30}(?:safety|content|polic|prohibited)",
        "inappropriate content",
        "content exists risk",
        "considered high risk",
        "usage polic",
        "new_sensitive",
        "sensitive content",
    ),
    "too_large": (
        "request(?: entity| body| payload)?(?: is)? too large",
        "payload size exceeds",
        "request_too_large",
        "request exceeds the maximum (?:allowed|size)",
        "body (?:is )?too large",
    ),
    "rate_limit": (
        "rate[ _-]?limit",
        "too many (?:requests|concurrent)",
        "(?:requests|tokens) per (?:second|minute|hour|day)",
        "quota exceeded",
        "exceeded your current quota",
        "throttl",
        "concurrent requests",
        "max (?:organization )?concurrency",
    ),
    "overloaded": (
        "overloaded",
        "(?:at|over|exceeded|out of|no) capacity",
        "capacity constraints",
        "(?:high|heavy) (?:load|demand|traffic)",
        "(?:server|service|system) (?:is )?(?:currently )?busy",
        "temporarily unavailable",
        "no healthy upstream",
        "loading model",
        "model is (?:currently )?loading",
    ),
    "timeout": ("time[d]? ?out", "deadline (?:exceeded|expired)"),
    "unreachable": ("cannot be reached",),
    "not_found": (
        "model[ :`'\"].{0,80}(?:not found|does not exist|not exist)",
        "not a valid model",
        "unknown model",
        "model identifier is invalid",
        "no such model",
    ),
    "permission": ("permission denied", "do(?:es)? not have (?:permission|access)", "not authorized to"),
    "bad_output": (
        "failed to call a function",
        "malformed[ _]function[ _]call",
        "model produced (?:an )?invalid",
        "the model wrote an unusable answer",
    ),
    "bad_request": ("the request was refused",),
    "server": ("the provider failed",),
}

_REFUSED: Final[tuple[FailureKind, ...]] = (
    *("context_overflow", "billing", "auth", "content_filter", "too_large", "not_found", "permission", "bad_output"),
    "bad_request",
)
_BROKEN: Final[tuple[FailureKind, ...]] = (
    *("context_overflow", "overloaded", "rate_limit", "timeout", "content_filter", "bad_output", "server"),
)
_DECIDED_BY_TEXT: Final[dict[int, tuple[FailureKind, ...]]] = {
    400: _REFUSED,
    403: ("billing", "auth", "content_filter", "permission"),
    413: ("context_overflow", "too_large"),
    422: _REFUSED,
    424: _BROKEN,
    429: ("billing", "overloaded", "rate_limit"),
    500: _BROKEN,
    502: (*_BROKEN, "unreachable"),
}
"""The kinds that a text can decide on, by status. Other error statuses decide alone."""


def _by_code(table: dict[FailureKind, str]) -> dict[str, FailureKind]:
    return {code: kind for kind, codes in table.items() for code in codes.split()}


_CODES: Final = _by_code(CODES)
_VAGUE_CODES: Final = _by_code(VAGUE_CODES)


def kind_of(status: int | None, codes: Iterable[str], text: str) -> FailureKind:
    """The kind of a failure. A status below 400 is ignored."""
    plain = [_plain(code) for code in codes]
    clear = next((_CODES[code] for code in plain if code in _CODES), None)
    if clear is not None:
        return clear
    error_status = status if status is not None and 400 <= status <= 599 else None
    allowed = KINDS if error_status is None else _DECIDED_BY_TEXT.get(error_status, ())
    by_text = _kind_of_text(text, allowed) if allowed else None
    if by_text is not None:
        return by_text
    if error_status is None:
        return next((_VAGUE_CODES[code] for code in plain if code in _VAGUE_CODES), "server")
    return STATUSES.get(error_status, "bad_request" if error_status < 500 else "server")


@cache
def _phrases() -> re.Pattern[str]:
    """All phrases in one pattern, with one group per kind, for lowercase text. Compiled for the first error."""
    kinds = (f"(?P<{kind}>{'|'.join(phrases)})" for kind, phrases in _TEXTS.items())
    return re.compile("|".join(kinds), re.DOTALL)


def _kind_of_text(text: str, allowed: tuple[FailureKind, ...]) -> FailureKind | None:
    for found in _phrases().finditer(text.lower()):
        kind = next(kind for kind in KINDS if kind == found.lastgroup)
        if kind in allowed:
            return kind
    return None


def _plain(code: str) -> str:
    """A code as the tables write it: without AWS's namespace and address, in lowercase."""
    return code.split(":", 1)[0].rsplit("#", 1)[-1].strip().lower().replace("-", "_").replace(" ", "_")
