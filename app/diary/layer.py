"""The descriptor of the diary layer."""

from app.bindings.models import Binding
from app.diary.bound import describe_writes, on_bindings
from app.diary.changes import on_change, on_move, on_settings_changed, on_truncate
from app.diary.entry_job import REWRITE_ENTRY, WRITE_ENTRY
from app.diary.fold_job import FOLD_DIARY
from app.diary.handlers import NAME, on_append, on_cut, refresh_cache
from app.diary.models import DiaryEntry
from app.diary.naming import on_rename
from app.diary.prompts import DIARY, DIARY_ENTRY
from app.diary.queries import DOCUMENTS, OF_CHAT_ITSELF, OF_CURRENT, OF_LINE
from app.diary.routes import router
from app.diary.segment import RECENT, SEGMENT, contribute
from app.diary.settings import DiarySettings
from app.diary.shared.queries import DOCUMENTS as SHARED_DOCUMENTS
from app.diary.shared.queries import SHARES
from app.diary.shared.service import erase_owner, on_line_replaced
from app.diary.stored_forms import CachedDiaries, StoredEntryWork, StoredNumbers
from app.diary.tools import SAVE_MEMORY
from app.layers.layer import Layer
from app.narratives.models import NarrativeVersion

LAYER = Layer(
    name=NAME,
    settings=DiarySettings,
    cursor=StoredNumbers,
    cached=CachedDiaries,
    planned=StoredEntryWork,
    models=(DiaryEntry, NarrativeVersion, Binding),
    jobs=(FOLD_DIARY, WRITE_ENTRY, REWRITE_ENTRY),
    routers=(router,),
    prompts=(DIARY, DIARY_ENTRY),
    tools=(SAVE_MEMORY,),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
    on_bindings=on_bindings,
    describe_writes=describe_writes,
    on_move=on_move,
    on_rename=on_rename,
    on_settings_changed=on_settings_changed,
    on_cut=on_cut,
    on_line_replaced=on_line_replaced,
    refresh_cache=refresh_cache,
    segments=(SEGMENT, RECENT),
    context_query=OF_LINE,
    current_query=OF_CURRENT,
    own_query=OF_CHAT_ITSELF,
    queried_if=SHARES,
    contribute=contribute,
    documents=DOCUMENTS,
    document_kinds=("diary",),
    shared_documents=SHARED_DOCUMENTS,
    shares_texts=lambda settings: DiarySettings.of(settings).is_shared,
    erase_owner=erase_owner,
)
