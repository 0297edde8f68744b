"""What a collector that is configured for the whole process learns of requests: nothing."""

from typing import Any

import httpx
import pytest
from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider, NoOpMeter
from opentelemetry.trace import NoOpTracer, TracerProvider

_asked: list[str] = []


class _Tracers(TracerProvider):
    """A provider that FastAPI takes for a configured one; it records who asks."""

    def get_tracer(self, instrumenting_module_name: str, *_arguments: Any, **_options: Any) -> NoOpTracer:
        _asked.append(instrumenting_module_name)
        return NoOpTracer()


class _Meters(MeterProvider):
    """Likewise for metrics."""

    def get_meter(self, name: str, *_arguments: Any, **_options: Any) -> NoOpMeter:
        _asked.append(name)
        return NoOpMeter(name)


@pytest.fixture(scope="module")
def providers() -> None:
    """Configure telemetry, which a process can do once: it stays for the tests that follow."""
    trace.set_tracer_provider(_Tracers())
    metrics.set_meter_provider(_Meters())


@pytest.mark.usefixtures("providers")
async def test_requests_are_not_traced(api: httpx.AsyncClient) -> None:
    assert (await api.get("/v1/presets")).status_code == 200
    assert _asked == []
