"""The descriptor of the consolidation layer."""

from typing import Self

from pydantic import model_validator

from app.consolidation.again_job import SCHEDULE_AGAIN
from app.consolidation.changes import on_change, on_settings_changed, on_truncate
from app.consolidation.handlers import NAME, covered_through, on_append, on_session
from app.consolidation.job import CONSOLIDATE
from app.consolidation.models import Consolidation
from app.consolidation.prompts import CONSOLIDATION
from app.consolidation.ranges import key_of
from app.consolidation.routes import router
from app.consolidation.settings import ConsolidationSettings
from app.layers.layer import Layer
from app.layers.stored_forms import StoredPeriod, StoredSpan, StoredWork
from app.layers.stored_json import IsoTime, StoredJson


class StoredRange(StoredJson):
    """The layer's cursor (`handlers.py`)."""

    period: StoredPeriod | None = None
    dated_at: IsoTime | None = None


class StoredDue(StoredSpan):
    """`Due` of `ranges.py`."""

    learnt_at: IsoTime


class StoredReading(StoredWork):
    """The work item of a range that was never read."""

    payload: StoredDue

    @model_validator(mode="after")
    def _has_its_key(self) -> Self:
        if self.key != key_of(self.payload.first_seq):
            raise ValueError(f"key must be {key_of(self.payload.first_seq)}")
        return self


LAYER = Layer(
    name=NAME,
    settings=ConsolidationSettings,
    cursor=StoredRange,
    planned=StoredReading,
    models=(Consolidation,),
    jobs=(CONSOLIDATE, SCHEDULE_AGAIN),
    routers=(router,),
    prompts=(CONSOLIDATION,),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
    on_settings_changed=on_settings_changed,
    on_session=on_session,
    covered_through=covered_through,
)
