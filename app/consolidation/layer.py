"""The descriptor of the consolidation layer."""

from app.consolidation.again_job import SCHEDULE_AGAIN
from app.consolidation.changes import on_change, on_settings_changed, on_truncate
from app.consolidation.handlers import NAME, covered_through, on_append, on_session
from app.consolidation.job import CONSOLIDATE
from app.consolidation.models import Consolidation
from app.consolidation.prompts import CONSOLIDATION
from app.consolidation.routes import router
from app.consolidation.settings import ConsolidationSettings
from app.layers.layer import Layer
from app.layers.stored_forms import StoredPeriod
from app.layers.stored_json import IsoTime, StoredJson


class StoredRange(StoredJson):
    """The layer's cursor (`handlers.py`)."""

    period: StoredPeriod | None = None
    dated_at: IsoTime | None = None


LAYER = Layer(
    name=NAME,
    settings=ConsolidationSettings,
    cursor=StoredRange,
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
