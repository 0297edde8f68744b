"""The layer of the summary."""

from app.layers.layer import Layer
from app.layers.stored_forms import CachedNarrative
from app.layers.stored_json import Number, StoredJson
from app.narratives.models import NarrativeVersion
from app.summary.changes import on_change, on_move, on_settings_changed, on_truncate
from app.summary.handlers import (
    covered_through,
    list_coverage,
    list_edges,
    on_append,
    on_cut,
    refresh_cache,
    request_coverage,
)
from app.summary.jobs import FOLD_SUMMARY
from app.summary.next_fold import NAME
from app.summary.prompts import SUMMARY
from app.summary.routes import router
from app.summary.segment import DOCUMENTS, SEGMENT, contribute
from app.summary.settings import FOLD_EDGES, SummarySettings


class StoredCoverage(StoredJson):
    """The layer's cursor."""

    covered_seq: Number


LAYER = Layer(
    name=NAME,
    settings=SummarySettings,
    cursor=StoredCoverage,
    cached=CachedNarrative,
    models=(NarrativeVersion,),
    jobs=(FOLD_SUMMARY,),
    routers=(router,),
    prompts=(SUMMARY,),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
    on_move=on_move,
    on_settings_changed=on_settings_changed,
    on_cut=on_cut,
    covered_through=covered_through,
    request_coverage=request_coverage,
    list_coverage=list_coverage,
    edges=FOLD_EDGES,
    adds_edges_late=True,
    list_edges=list_edges,
    refresh_cache=refresh_cache,
    segments=(SEGMENT,),
    contribute=contribute,
    documents=DOCUMENTS,
    document_kinds=("summary",),
)
