"""Errors as providers send them, each with its kind, and the codecs that read them."""

from __future__ import annotations

import importlib
import json
from typing import Any

from toolglot import Failure, FailureKind

PROTOCOLS = ("anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat", "openai_responses")
Row = tuple[str, int, Any, FailureKind]
MODULES: dict[str, Any] = {name: importlib.import_module(f"toolglot.protocols.{name}.errors") for name in PROTOCOLS}


def errors(protocol: str) -> Any:
    return MODULES[protocol]


def decode(protocol: str, status: int, body: Any, headers: dict[str, str] | None = None, target: str = "") -> Failure:
    failure = errors(protocol).decode(status, body, headers or {}, target=target)
    assert isinstance(failure, Failure)
    return failure


def anthropic(kind: str, message: str, **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_011CS"}


def openai(message: str, type: str | None = None, code: Any = None, param: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def google(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {
        "error": {"code": code, "message": message, "status": status, **({"details": list(details)} if details else {})}
    }


KEY_INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
INVALID = "invalid_request_error"
ANTHROPIC: list[Row] = [
    ("anthropic", 400, anthropic(INVALID, "messages.1.content: Field required"), "bad_request"),
    ("anthropic", 400, anthropic(INVALID, "Your credit balance is too low to access the Anthropic API."), "billing"),
    ("anthropic", 400, anthropic(INVALID, "prompt is too long: 208310 tokens > 200000 maximum"), "context_overflow"),
    (
        "bedrock",
        400,
        {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length."},
        "context_overflow",
    ),
    ("bedrock", 400, {"message": "messages: too many total text bytes: 9000001 > 9000000"}, "context_overflow"),
    (
        "openai_chat",
        400,
        {"error": {"message": "Too much.", "type": "too_many_prompt_tokens"}},
        "context_overflow",
    ),
    (
        "openai_chat",
        400,
        {"error": {"message": "The total length of all messages is too long."}},
        "context_overflow",
    ),
    (
        "anthropic",
        400,
        anthropic(INVALID, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"),
        "context_overflow",
    ),
    ("anthropic", 400, anthropic(INVALID, "Output blocked by content filtering policy"), "content_filter"),
    ("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), "auth"),
    ("anthropic", 402, anthropic("billing_error", "There is a problem with your payment."), "billing"),
    ("anthropic", 403, anthropic("permission_error", "Your API key may not use this resource."), "permission"),
    ("anthropic", 404, anthropic("not_found_error", "model: claude-9"), "not_found"),
    ("anthropic", 413, anthropic("request_too_large", "Request exceeds the maximum size"), "too_large"),
    ("anthropic", 429, anthropic("rate_limit_error", "This request would exceed your rate limit"), "rate_limit"),
    (
        "anthropic",
        429,
        anthropic("rate_limit_error", "limit", details={"error_code": "enforced_spend_limit_reached"}),
        "billing",
    ),
    ("anthropic", 500, anthropic("api_error", "Internal server error"), "server"),
    ("anthropic", 504, anthropic("timeout_error", "The request timed out"), "timeout"),
    ("anthropic", 529, anthropic("overloaded_error", "Overloaded"), "overloaded"),
    ("anthropic", 200, anthropic("overloaded_error", "Overloaded"), "overloaded"),
    ("anthropic", 200, anthropic("api_error", "Internal server error"), "server"),
]
OPENAI: list[Row] = [
    ("openai_chat", 400, openai("Unknown parameter: 'foo'.", INVALID, "unknown_parameter", "foo"), "bad_request"),
    ("openai_chat", 401, openai("Incorrect API key provided: sk-x.", INVALID, "invalid_api_key"), "auth"),
    ("openai_chat", 403, openai("Country not supported", "request_forbidden"), "permission"),
    ("openai_chat", 404, openai("The model `gpt-9` does not exist", INVALID, "model_not_found"), "not_found"),
    ("openai_chat", 429, openai("Rate limit reached for gpt-4o", "tokens", "rate_limit_exceeded"), "rate_limit"),
    (
        "openai_chat",
        429,
        openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
        "billing",
    ),
    (
        "openai_chat",
        400,
        openai("This model's maximum context length is 128000 tokens.", INVALID, "context_length_exceeded"),
        "context_overflow",
    ),
    ("openai_chat", 500, openai("The server had an error", "server_error"), "server"),
    ("openai_chat", 503, openai("The engine is currently overloaded", "server_error"), "overloaded"),
    ("openai_chat", 400, openai("Your request was rejected", INVALID, "content_policy_violation"), "content_filter"),
    # Azure
    (
        "openai_chat",
        400,
        {
            "error": {
                "code": "content_filter",
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's policy.",
                "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
            }
        },
        "content_filter",
    ),
    ("openai_chat", 401, {"statusCode": 401, "message": "Access denied due to invalid subscription key"}, "auth"),
    ("openai_chat", 404, {"error": {"code": "DeploymentNotFound", "message": "no such deployment"}}, "not_found"),
    # Mistral
    (
        "openai_chat",
        400,
        {"object": "error", "message": "Unexpected role", "type": "invalid_request_message_order", "code": "3230"},
        "bad_request",
    ),
    ("openai_chat", 401, {"message": "Unauthorized", "request_id": "abc"}, "auth"),
    ("openai_chat", 429, {"object": "error", "message": "Requests rate limit exceeded", "code": "1300"}, "rate_limit"),
    (
        "openai_chat",
        422,
        {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required"}]},
        "bad_request",
    ),
    (
        "openai_chat",
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "type": INVALID,
        },
        "context_overflow",
    ),
    # OpenRouter
    ("openai_chat", 402, openai("Insufficient credits", None, 402), "billing"),
    ("openai_chat", 200, {"error": {"code": 429, "message": "Provider returned error"}}, "rate_limit"),
    (
        "openai_chat",
        200,
        {
            "error": {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {
                    "provider_name": "Anthropic",
                    "raw": json.dumps(anthropic(INVALID, "prompt is too long: 9 tokens > 8 maximum")),
                },
            }
        },
        "context_overflow",
    ),
    (
        "openai_chat",
        200,
        {"id": "gen-1", "choices": [{"finish_reason": "error", "error": {"code": 502, "message": "Upstream died"}}]},
        "server",
    ),
    ("openai_chat", 200, {"error": {"code": "503", "message": "nothing there"}}, "overloaded"),
    # DeepSeek, Kimi, xAI, Qwen, GLM, MiniMax
    ("openai_chat", 402, openai("Insufficient Balance", "unknown_error", INVALID), "billing"),
    ("openai_chat", 400, openai("Content Exists Risk", INVALID, INVALID), "content_filter"),
    ("openai_chat", 429, openai("The engine is currently overloaded", "engine_overloaded_error"), "overloaded"),
    ("openai_chat", 429, openai("Your account is suspended", "exceeded_current_quota_error"), "billing"),
    (
        "openai_chat",
        400,
        openai("Invalid request: Your request exceeded model token limit: 131072", INVALID),
        "context_overflow",
    ),
    ("openai_chat", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key"}, "auth"),
    ("openai_chat", 403, {"code": "Forbidden", "error": "Your team has used all available credits"}, "billing"),
    (
        "openai_chat",
        400,
        openai("This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        "context_overflow",
    ),
    ("openai_chat", 400, openai("Access denied", "Arrearage", "Arrearage"), "billing"),
    (
        "openai_chat",
        400,
        openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
        "context_overflow",
    ),
    ("openai_chat", 400, openai("inappropriate", None, "data_inspection_failed"), "content_filter"),
    ("openai_chat", 429, {"error": {"code": "1113", "message": "recharge"}}, "billing"),
    ("openai_chat", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, "context_overflow"),
    ("openai_chat", 200, {"code": 500, "msg": "404 NOT_FOUND", "success": False}, "server"),
    ("openai_chat", 200, {"base_resp": {"status_code": 1002, "status_msg": "limit"}, "choices": None}, "rate_limit"),
    ("openai_chat", 200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, "billing"),
    (
        "openai_chat",
        200,
        {"base_resp": {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit (2013)"}},
        "context_overflow",
    ),
    ("openai_chat", 200, {"base_resp": {"status_code": 2013, "status_msg": "invalid tool type: "}}, "bad_request"),
    ("openai_chat", 200, {"base_resp": {"status_code": 1033, "status_msg": "system error"}}, "server"),
    # Groq, Cerebras, vLLM, llama.cpp, TGI
    ("openai_chat", 400, openai("Failed to call a function.", INVALID, "tool_use_failed"), "bad_output"),
    ("openai_chat", 413, openai("Request too large", "tokens", "rate_limit_exceeded"), "rate_limit"),
    ("openai_chat", 400, openai("tokens", "BadRequestError", 400), "bad_request"),
    (
        "openai_chat",
        400,
        {"error": {"code": 400, "message": "the request exceeds", "type": "exceed_context_size_error"}},
        "context_overflow",
    ),
    (
        "openai_chat",
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        "overloaded",
    ),
    (
        "openai_chat",
        422,
        {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096", "error_type": "x"},
        "context_overflow",
    ),
    ("openai_chat", 400, openai("foo/bar is not a valid model ID", None, 400), "not_found"),
]
OTHERS: list[Row] = [
    ("openai_responses", 400, openai("No tool output found", INVALID, None, "input"), "bad_request"),
    (
        "openai_responses",
        200,
        {
            "id": "resp_1",
            "status": "failed",
            "error": {"code": "rate_limit_exceeded", "message": "try again in 1.898s"},
        },
        "rate_limit",
    ),
    ("openai_responses", 200, {"id": "resp_1", "status": "failed", "error": None}, "server"),
    (
        "openai_responses",
        200,
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "context_length_exceeded", "message": "too much"}},
        },
        "context_overflow",
    ),
    (
        "openai_responses",
        200,
        {"type": "error", "code": "server_is_overloaded", "message": "busy", "param": None},
        "overloaded",
    ),
    ("openai_responses", 200, {"type": "response.failed", "response": 5}, "server"),
    ("gemini", 400, google(400, "INVALID_ARGUMENT", "API key not valid.", KEY_INFO), "auth"),
    ("gemini", 400, google(400, "FAILED_PRECONDITION", "Please enable billing on your project"), "billing"),
    (
        "gemini",
        400,
        google(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "context_overflow",
    ),
    ("gemini", 403, google(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers"), "permission"),
    ("gemini", 404, google(404, "NOT_FOUND", "models/x is not found for API version v1beta"), "not_found"),
    (
        "gemini",
        429,
        google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing"),
        "rate_limit",
    ),
    ("gemini", 429, google(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), "billing"),
    ("gemini", 500, google(500, "INTERNAL", "An internal error has occurred"), "server"),
    ("gemini", 503, google(503, "UNAVAILABLE", "The model is overloaded."), "overloaded"),
    ("gemini", 504, google(504, "DEADLINE_EXCEEDED", "Deadline expired"), "timeout"),
    ("gemini", 200, google(503, "UNAVAILABLE", "The model is overloaded."), "overloaded"),
    ("gemini", 429, [google(429, "RESOURCE_EXHAUSTED", "slow")], "rate_limit"),
    ("gemini", 200, {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}, "content_filter"),
    ("gemini", 200, {"prompt_feedback": {"block_reason": "OTHER"}}, "content_filter"),
    ("gemini", 200, {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}, "bad_output"),
    ("bedrock", 429, {"message": "Too many tokens, please wait before trying again."}, "rate_limit"),
    ("bedrock", 400, {"message": "Input is too long for requested model."}, "context_overflow"),
    ("bedrock", 400, {"message": "The provided model identifier is invalid."}, "not_found"),
    ("bedrock", 403, {"message": "The security token included in the request is invalid."}, "auth"),
    ("bedrock", 403, {"message": "You don't have access to the model with the specified model ID."}, "permission"),
    (
        "bedrock",
        403,
        {"message": "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be"},
        "billing",
    ),
    ("bedrock", 424, {"message": "The model failed", "originalStatusCode": 500}, "bad_output"),
    ("bedrock", 503, {"__type": "ServiceUnavailableException", "message": "busy"}, "overloaded"),
    ("bedrock", 200, {"throttlingException": {"message": "Too many requests"}}, "rate_limit"),
    ("bedrock", 200, {"modelStreamErrorException": {"message": "oops", "originalMessage": "x"}}, "bad_output"),
    ("bedrock", 200, {"validationException": {"message": "malformed"}}, "bad_request"),
    ("bedrock", 200, {"internalServerException": {"message": "oops"}}, "server"),
    (
        "cohere",
        400,
        {"message": "too many tokens: total number of tokens cannot exceed 4081", "id": "1"},
        "context_overflow",
    ),
    ("cohere", 401, {"message": "invalid api token"}, "auth"),
    ("cohere", 402, {"message": "add a payment method"}, "billing"),
    ("cohere", 422, {"message": "unknown field: parameter 'x' is not a valid field"}, "bad_request"),
    ("cohere", 429, {"message": "You are using a Trial key, limited to 20 API calls / minute"}, "rate_limit"),
    ("cohere", 498, {"message": "invalid token"}, "auth"),
    ("cohere", 499, {"message": "request cancelled"}, "timeout"),
    ("cohere", 200, {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "it broke"}}, "server"),
    ("cohere", 200, {"message": "rate limit exceeded", "id": "7"}, "rate_limit"),
    ("ollama", 400, {"error": '"m" does not support tools'}, "bad_request"),
    ("ollama", 404, {"error": 'model "x" not found, try pulling it first'}, "not_found"),
    ("ollama", 500, {"error": "prompt too long; exceeded max context length by 4 tokens"}, "context_overflow"),
    ("ollama", 503, {"error": "server busy, please try again. maximum pending requests exceeded"}, "overloaded"),
    ("ollama", 200, {"error": "an error was encountered while running the model"}, "server"),
]
ROWS = [*ANTHROPIC, *OPENAI, *OTHERS]
