"""Parsing of responses from OpenAI-compatible servers. Pure.

Every response becomes a `Completion` with text or a `ModelError`. An error is *transient* if the same request may
succeed later: no connection, a time-out, 408, 429, 5xx. It is not transient if a retry would cost a call and fail
again: the key or the request is refused, or the answer is not JSON, has no choices or no text, or declines.

The reasons of errors are fixed texts. They never quote the server, whose messages may contain the prompt or the key.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from app.kit.refusals import Refusal

_REASONS = {
    401: "the model refuses the key",
    402: "the model's account has no credit",
    403: "the key may not use this model",
    404: "the model server knows no such model or path",
    408: "the model server ran out of time",
    413: "the prompt is too long for the model server",
    429: "the model is rate-limited",
}
_CURABLE = (401, 402, 403, 404)
_DECLINED = "the model declines to answer"
_WITHHELD = "the model's answer was withheld by a content filter"
_DECLINING = (_DECLINED, _WITHHELD)
_WORD_CHARS = 200


class ModelError(Exception):
    """The model returned no usable answer.

    Attributes:
        reason: One line that may be shown to people; it contains no key, prompt or address.
        transient: Whether the same request may succeed later.
        curable: Whether the call may succeed later: the error is transient, or a person can correct its cause in the
            key, the account or the settings of the model.
        retry_after_s: The delay that the server asked for, or None.
        prompt_tokens: The prompt tokens that the failed call used, as counted by the server, or None.
        completion_tokens: The answer tokens that the failed call used, including reasoning, or None.
        refusal: Set if the model answered, but the answer cannot be used because it declines or is empty.

    """

    def __init__(
        self,
        reason: str,
        *,
        transient: bool,
        curable: bool = False,
        retry_after_s: float | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.curable = transient or curable
        self.retry_after_s = retry_after_s
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer of the model.

    Attributes:
        text: The text, stripped, not empty, and without NUL, which PostgreSQL's text type cannot store.
        model: The model's name as the server returned it, or as requested.
        prompt_tokens: As counted by the server, or None.
        completion_tokens: The tokens of the answer, including reasoning, or None.
        finish_reason: `stop`; `length` if the text was cut off at `max_tokens`; or another value of the server.

    """

    text: str
    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None


def read_completion(body: bytes, *, asked_model: str) -> Completion:
    """Return the completion in the body of a 2xx response.

    Raises ModelError, which includes the token counts of an answer without usable text.
    """
    answer = read_answer(body)
    choices = answer.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
    message = _object(choice.get("message"))
    finish_reason = _word(choice.get("finish_reason"))
    text = _text(message.get("content"))
    usage = _object(answer.get("usage"))
    prompt_tokens = read_tokens(usage.get("prompt_tokens"))
    completion_tokens = read_tokens(usage.get("completion_tokens"))
    if not choices or message.get("refusal") or not text:
        why = _why_unusable(choices, message, finish_reason)
        raise ModelError(
            why,
            transient=False,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            refusal=Refusal("declined" if why in _DECLINING else "form", why),
        )
    return Completion(
        text=text,
        model=_word(answer.get("model")) or asked_model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        finish_reason=finish_reason,
    )


def read_answer(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a 2xx response. Raises ModelError if it is missing or reports an error."""
    answer = _read_object(body)
    if not answer:
        what = "something that is not a JSON object" if body.strip() else "nothing"
        raise ModelError(f"the model server answers {what}", transient=False)
    status = _object(answer.get("error")).get("code")
    if isinstance(status, int) and 400 <= status <= 599:  # some proxies send 200 before they know the outcome
        raise refusal(status)
    return answer


def refusal(status: int, *, retry_after_s: float | None = None) -> ModelError:
    """Return the error for an HTTP status other than 2xx."""
    if status >= 500:
        reason = "the model server fails"
    elif 300 <= status < 400:
        reason = "the model server redirects, which is not followed"
    else:
        reason = _REASONS.get(status, "the model server refuses the request")
    transient = status in (408, 429) or status >= 500
    return ModelError(
        f"{reason} ({status})", transient=transient, curable=status in _CURABLE, retry_after_s=retry_after_s
    )


def needs_correction(reason: str) -> bool:
    """Return whether the `reason` of a ModelError is one that only a person can correct: the key, account or model.

    The texts are compared, because the error of a work item has no status.
    """
    return any(reason == refusal(status).reason for status in _CURABLE)


def refused_parameter(body: bytes) -> str | None:
    """Return the parameter that the body of a 400 reports as unsupported, or None.

    The documented form: `{"error": {"code": "unsupported_parameter" | "unsupported_value", "param": name}}`.
    """
    error = _object(_read_object(body).get("error"))
    if error.get("code") not in ("unsupported_parameter", "unsupported_value"):
        return None
    return _word(error.get("param"))


def _read_object(body: bytes) -> dict[str, Any]:
    """Return `body` as a JSON object, or an empty one if it is not a JSON object."""
    try:
        return _object(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str | None:
    return value.replace("\x00", "")[:_WORD_CHARS] or None if isinstance(value, str) else None


def read_tokens(value: object) -> int | None:
    """Return a count of tokens, or None if `value` is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(content: object) -> str:
    """Return the text of a message's content, which is a string or a list of parts; other parts are ignored."""
    if isinstance(content, list):
        parts = [_object(part) for part in content]
        content = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return content.replace("\x00", "").strip() if isinstance(content, str) else ""


def _why_unusable(choices: object, message: dict[str, Any], finish_reason: str | None) -> str:
    if not isinstance(choices, list) or not choices:
        return "the model's answer has no choices"
    if message.get("refusal"):
        return _DECLINED
    if finish_reason == "content_filter":
        return _WITHHELD
    if message.get("reasoning_content") or message.get("reasoning"):
        return "the model thought, but wrote no answer"
    return "the model's answer is empty"
