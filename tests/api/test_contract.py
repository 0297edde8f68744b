"""What holds for every operation alike, read from the schema."""

from collections.abc import Iterator

from tests.api.path_parameters import SCHEMA

SCHEMAS = SCHEMA["components"]["schemas"]


def test_a_range_is_first_seq_and_last_seq() -> None:
    assert {"first_seq", "last_seq"} <= set(SCHEMAS["VisibilityRange"]["properties"])
    assert not {"from_seq", "to_seq", "until_seq", "start_seq", "end_seq"} & set(_fields())


def test_every_list_has_a_single_get() -> None:
    lists = {path for path, answer in _reads() if answer.startswith("Page_")}
    parts = {
        "/v1/chats/{chat_id}/diary/shared",  # entries of other chats
        "/v1/chats/{chat_id}/inclusion",
        "/v1/chats/{chat_id}/messages/{message_id}/revisions",
        "/v1/chats/{chat_id}/tools/calls",
        "/v1/work",
    }
    parts |= {path for path in lists if path.endswith("/history")}  # former values of one item
    singles = {path.rpartition("/")[0] for path, _ in _reads() if path.endswith("}")}
    assert lists - parts - singles == set()


def test_every_read_of_a_chat_takes_a_line() -> None:
    of_lines = ("/checkpoints", "/checkpoints/{name}", "/lines", "/lines/{line}")
    for path, _ in _reads():
        if path.startswith("/v1/chats/{chat_id}") and not path.endswith(of_lines):
            parameters = SCHEMA["paths"][path]["get"]["parameters"]
            assert "line" in {one["name"] for one in parameters if one["in"] == "query"}, path


def test_every_202_answers_with_a_work_id() -> None:
    for path, methods in SCHEMA["paths"].items():
        for operation in methods.values():
            if "202" in operation["responses"]:
                schema = operation["responses"]["202"]["content"]["application/json"]["schema"]
                answer = SCHEMAS[schema["$ref"].rpartition("/")[2]]
                assert "work_id" in answer["required"], path
                assert answer["properties"]["work_id"]["type"] == "string", f"{path} may answer without work"


def _reads() -> Iterator[tuple[str, str]]:
    """The path of each GET, with the name of the schema of its answer."""
    for path, methods in SCHEMA["paths"].items():
        if "get" in methods:
            content = methods["get"]["responses"]["200"]["content"]
            schema = content.get("application/json", {"schema": {"$ref": "a file"}})["schema"]
            yield path, schema["$ref"].rpartition("/")[2]


def _fields() -> Iterator[str]:
    """The names of all fields of all bodies and answers."""
    for schema in SCHEMAS.values():
        yield from schema.get("properties", ())
