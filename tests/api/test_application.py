"""What the applications of one process share, and what each has of its own."""

from app.kit.settings import Settings
from app.main import create_app
from app.registry import LAYERS
from tests.api.path_parameters import SCHEMA

SETTINGS = Settings(database_url="postgresql://nowhere/", _env_file=None)


async def test_applications_share_their_routes_only() -> None:
    one, other = (create_app(SETTINGS) for _ in range(2))
    assert [id(route) for route in one.routes] == [id(route) for route in other.routes]
    for name in ("database", "keyring", "notifier", "rate_limiter", "database_checks"):
        assert getattr(one.state, name) is not getattr(other.state, name)


async def test_a_further_route_is_of_its_application_only() -> None:
    one, other = (create_app(SETTINGS) for _ in range(2))
    one.add_api_route("/further", lambda: None)
    assert str(one.url_path_for("<lambda>")) == "/further"
    assert len(other.routes) == len(one.routes) - 1


async def test_other_layers_make_other_routes() -> None:
    assert "/v1/chats/{chat_id}/scenes" in SCHEMA["paths"]
    fewer = tuple(layer for layer in LAYERS if layer.name != "scenes")
    assert "/v1/chats/{chat_id}/scenes" not in create_app(SETTINGS, layers=fewer).openapi()["paths"]
