"""The descriptor of the memos layer."""

from app.layers.layer import Layer
from app.memos.changes import on_change, on_move, on_settings_changed, on_truncate
from app.memos.handlers import covered_through, list_coverage, list_edges, on_append, on_rename, refresh_cache
from app.memos.jobs import MAKE_MEMO
from app.memos.models import NAME, Memo
from app.memos.prompts import MEMO
from app.memos.queries import DOCUMENTS
from app.memos.routes import router
from app.memos.segment import EDGES, SEGMENT, contribute
from app.memos.settings import BATCH_EDGES, MemoSettings
from app.memos.stored_forms import CachedWindow, StoredBatch

LAYER = Layer(
    name=NAME,
    settings=MemoSettings,
    cursor=StoredBatch | None,
    cached=CachedWindow,
    models=(Memo,),
    jobs=(MAKE_MEMO,),
    routers=(router,),
    prompts=(MEMO,),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
    on_move=on_move,
    on_rename=on_rename,
    on_settings_changed=on_settings_changed,
    covered_through=covered_through,
    list_coverage=list_coverage,
    sets_memo_id=True,
    edges=BATCH_EDGES,
    list_edges=list_edges,
    refresh_cache=refresh_cache,
    segments=(SEGMENT,),
    context_query=EDGES,
    documents=DOCUMENTS,
    document_kinds=("memo",),
    contribute=contribute,
)
