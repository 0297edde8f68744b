"""Error messages and placeholders in place of a text, and texts that only look like them."""

import pytest

from app.summarising.judging.notices import copies_stamp, find_notice
from app.summarising.judging.speech import fold

ERRORS = (
    "Request failed with status code 429",
    "The model is currently overloaded.",
    "The model is currently overloaded. Please try again later.",
    "(No response)",
    "[no content]",
    "undefined",
    "null",
    "Error: context length exceeded.",
    "An error occurred while generating the response.",
    "Error: 500 Internal Server Error",
    "Sorry, something went wrong. Please try again later.",
    "Error: This model's maximum context length is 8192 tokens, however you requested 9021 tokens.",
    "litellm.RateLimitError: RateLimitError: OpenAIException - slow down",
    "openai.APIConnectionError: Connection error.",
    "502 Bad Gateway",
    "Rate limit exceeded",
    "Error code: 429 - {'error': {'message': 'Rate limit exceeded', 'type': 'rate_limit'}}",
    "You exceeded your current quota, please check your plan and billing details.",
    "Unable to generate summary.",
    "The summary could not be generated.",
    "Summary unavailable.",
    "The server had an error while processing your request. Sorry about that!",
    "Invalid API key provided.",
    "API Error: 529 Overloaded",
    "Service temporarily unavailable",
    "I'm sorry, an error occurred while processing your request. Please try again.",
    "Failed to generate a response after 3 retries.",
    "No response from the model.",
    "[Continue the story]",
    "[Insert diary entry here]",
    "[Your summary goes here]",
    "(empty)",
    "Connection error.",
    "fetch failed",
    "Too many requests. Please try again later.",
    "HTTP 503",
    "Internal server error",
)
TEXTS = (
    "It failed. Try again.",
    "No response.",
    "No response. Will try again later.",
    "No response again. Try again later.",
    "Something went wrong.",
    "Something went wrong. I'm sorry.",
    "Error 404: heart not found.",
    "Error: I cannot stop thinking about her.",
    "The connection to the lighthouse failed.",
    "The connection failed.",
    "Connection failed.",
    "(Insert a dramatic sigh here.)",
    "(Your place is here.)",
    "(Empty, like the lamp room.)",
    "The connection timed out.",
    "Too many requests, and no time.",
    "Too many messages today.",
    "We could not complete the request.",
    "The request could not be completed.",
    "I could not process all of that at once.",
    "I'm sorry. It was my error, and I could not provide what she requested.",
    "The line is busy. Please try again later.",
    "TypeError: my favourite kind of day.",
    "The summary of it: no limit was reached.",
    "Nell's server returned error 429 all night.",
    "The server was overloaded, and many requests were rejected by Quill.",
    "System error. I laughed.",
    "The message is too long.",
    "[Quill kept the ring.]",
    "(No answer from Jonas.)",
    "No content of the letter was provided to Mira.",
    "The code is invalid.",
    "The conversation was too long.",
    "The current is overloaded.",
    "No data. No message. I wait.",
    "The text is unavailable in English; Kai translated it.",
    "The service was cancelled, and the support of the council failed.",
    "Server down, tokens spent, quota reached: a day in the arcade.",
)


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_message_is_no_text(text: str) -> None:
    refusal = find_notice(text, fold("The lamp is lit."))
    assert refusal is not None
    assert (refusal.kind, refusal.once) == ("form", False)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_about_a_failure_is_no_error_message(text: str) -> None:
    assert find_notice(text, fold("The lamp is lit.")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The request failed with status code 429.", "It failed again, always 429."),
        ("The model is currently overloaded.", "It says: the model is currently overloaded! What now?"),
        ("The model is currently overloaded. Please try again.", "The model is currently overloaded, it says."),
        ("Error: the request failed.", "The request failed, and the next one will be an error, too."),
        ("(No answer)", "I rang. (No answer.) I rang again."),
        ("[no reply]", "No reply."),
        ("ships.EngineError: out of oil", "The log says ships.EngineError, and nothing else."),
        ("An error occurred while processing your request.", "An error occurred while processing your request."),
    ],
)
def test_a_fault_that_the_material_names_is_accepted(text: str, said: str) -> None:
    assert find_notice(text, fold(said)) is None
    assert find_notice(text, fold("The lamp is lit.")) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("An error occurred while generating the response. Please try again.", "We learn by trial and error."),
        ("The server is busy", "I was so busy today."),
        ("Service unavailable.", "The doctor was unavailable."),
        ("The model is currently overloaded.", "My model is overloaded, I think."),
        ("Error: the request failed.", "Trial and error, Mira.\nThe lamp failed."),
        ("Error:\nPlease try again.", "Trial and error, Mira."),
        ("The request failed with status code 429.", "It failed.\nRoom 429."),
        ("(empty)", "The lamp room was empty."),
        ("undefined", "What I feel is undefined."),
        ("[Continue the story]", "[Continue the story]"),
    ],
)
def test_a_common_word_does_not_name_a_fault(text: str, said: str) -> None:
    known = "\n".join(map(fold, said.split("\n")))
    assert find_notice(text, known) is not None


@pytest.mark.parametrize(
    "text",
    [
        "harbour.LampError: I read it on the display.\nThen I laughed, and Mira laughed, too.",
        "lamp.heart.KeeperError: she was home before the light was, " + "and I said nothing. " * 4,
        "Traceback (most recent call last): " + "I followed my steps back to the harbour. " * 3,
    ],
)
def test_only_a_short_line_is_an_exception(text: str) -> None:
    assert find_notice(text, "") is None


def test_a_long_text_is_no_error_message() -> None:
    assert find_notice("The request failed with status code 429. " * 8, "") is None


def test_a_stamp_of_the_material_is_no_copy() -> None:
    text = "[10/22 19:00] Kai: under weather."
    assert copies_stamp(text, fold("The lamp is lit."), {"Kai"})
    assert copies_stamp(f"The lamp is lit.\n{text}", fold("The lamp is lit."), {"Kai Lund"})
    assert not copies_stamp(text, fold(f"I noted: {text}"), {"Kai"})
    assert not copies_stamp(text, fold("The lamp is lit."), {"Mira"})
