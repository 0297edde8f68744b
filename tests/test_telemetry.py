"""What a collector that is configured for the whole process gets to see of requests: nothing."""

from typing import Any

import httpx
import pytest
from opentelemetry import metrics, trace
from opentelemetry.trace import NoOpTracer, NoOpTracerProvider


class _Recorder(NoOpTracerProvider):
    """A configured provider, as FastAPI takes it, that records who asks it for a tracer."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_tracer(self, instrumenting_module_name: str, *_arguments: Any, **_options: Any) -> NoOpTracer:
        self.asked.append(instrumenting_module_name)
        return NoOpTracer()


async def test_requests_are_not_traced(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = _Recorder()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: recorder)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: pytest.fail("requests are counted"))
    assert (await api.get("/v1/presets")).status_code == 200
    assert recorder.asked == []
