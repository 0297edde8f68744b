"""Reading what an OpenAI-compatible server answers. Pure.

Whatever comes, it is a `Completion` with text or a `ModelError`. An error is *transient* where the same
request may succeed a little later: no connection, no time, 408, 429, 5xx. It is not where asking
at once again would cost a call and bring the same: a refused key or request, an answer that is not JSON,
has no choices or no text, or in which the model declines.

Reasons are made here from nothing but the status. A server's own words may quote the prompt or the key.
"""

from dataclasses import dataclass
from typing import Any

import orjson

_REASONS = {
    401: "the model refuses the key",
    402: "the model's account has no credit",
    403: "the key may not use this model",
    404: "the model server knows no such model or path",
    408: "the model server ran out of time",
    413: "the prompt is too long for the model server",
    429: "the model is rate-limited",
}
_WORD_CHARS = 200


class ModelError(Exception):
    """The model gave nothing usable.

    Attributes:
        reason: One line that may be shown to a person: it holds no key, no prompt and no address.
        transient: Whether the same request may succeed later.
        retry_after_s: How long the server asks to wait, if it does.
        prompt_tokens: What the answer took all the same, as the server counts it; None if it doesn't say.
        completion_tokens: Likewise, thinking included.

    """

    def __init__(
        self,
        reason: str,
        *,
        transient: bool,
        retry_after_s: float | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.retry_after_s = retry_after_s
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote.

    Attributes:
        text: Stripped, never empty, without NUL (which PostgreSQL's text cannot hold).
        model: The model's name as the server gives it, else as it was asked for.
        prompt_tokens: As the server counts them; None if it doesn't say.
        completion_tokens: Likewise, thinking included.
        finish_reason: `stop`; `length` if the text was cut off at `max_tokens`; or the server's own word.

    """

    text: str
    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None


def read_completion(body: bytes, *, asked_model: str) -> Completion:
    """The completion in the body of a 2xx answer. Raises ModelError, with what an answer without text has taken."""
    answer = _read_object(body)
    if not answer:
        what = "something that is not a JSON object" if body.strip() else "nothing"
        raise ModelError(f"the model server answers {what}", transient=False)
    status = _object(answer.get("error")).get("code")
    if isinstance(status, int) and 400 <= status <= 599:  # routers answer 200 before they know
        raise refusal(status)
    choices = answer.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
    message = _object(choice.get("message"))
    finish_reason = _word(choice.get("finish_reason"))
    text = _text(message.get("content"))
    usage = _object(answer.get("usage"))
    prompt_tokens, completion_tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if not choices or message.get("refusal") or not text:
        raise ModelError(
            _why_unusable(choices, message, finish_reason),
            transient=False,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
    return Completion(
        text=text,
        model=_word(answer.get("model")) or asked_model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        finish_reason=finish_reason,
    )


def refusal(status: int, *, retry_after_s: float | None = None) -> ModelError:
    """The error that an HTTP status other than 2xx stands for."""
    if status >= 500:
        reason = "the model server fails"
    elif 300 <= status < 400:
        reason = "the model server redirects, which is not followed"
    else:
        reason = _REASONS.get(status, "the model server refuses the request")
    transient = status in (408, 429) or status >= 500
    return ModelError(f"{reason} ({status})", transient=transient, retry_after_s=retry_after_s)


def refused_parameter(body: bytes) -> str | None:
    """The parameter that the body of a 400 says this model does not take, if it says so.

    The documented form: `{"error": {"code": "unsupported_parameter" | "unsupported_value", "param": name}}`.
    """
    error = _object(_read_object(body).get("error"))
    if error.get("code") not in ("unsupported_parameter", "unsupported_value"):
        return None
    return _word(error.get("param"))


def _read_object(body: bytes) -> dict[str, Any]:
    """`body` as a JSON object; empty if it is none."""
    try:
        return _object(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str | None:
    return value.replace("\x00", "")[:_WORD_CHARS] or None if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(content: object) -> str:
    """The text of a message's content: a string, or a list of parts of which only text counts."""
    if isinstance(content, list):
        parts = [_object(part) for part in content]
        content = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return content.replace("\x00", "").strip() if isinstance(content, str) else ""


def _why_unusable(choices: object, message: dict[str, Any], finish_reason: str | None) -> str:
    if not isinstance(choices, list) or not choices:
        return "the model's answer has no choices"
    if message.get("refusal"):
        return "the model declines to answer"
    if finish_reason == "content_filter":
        return "the model's answer was withheld by a content filter"
    if message.get("reasoning_content") or message.get("reasoning"):
        return "the model thought, but wrote no answer"
    return "the model's answer is empty"
