"""The descriptor of the memories layer."""

from app.bindings.models import Binding
from app.knowledge.coverage import list_memories_learnt
from app.knowledge.effects import describe_writes
from app.knowledge.models import Statement, Teaching
from app.knowledge.service import on_bindings
from app.layers.layer import Layer
from app.memories.queries import DOCUMENTS, SCOPE_DOCUMENTS
from app.memories.remember import NAME
from app.memories.routes import routers
from app.memories.settings import MemorySettings
from app.memories.state import export_state
from app.memories.tools import FORGET, MEMORY_LOG

LAYER = Layer(
    name=NAME,
    settings=MemorySettings,
    models=(Statement, Teaching, Binding),
    routers=routers,
    tools=(FORGET, MEMORY_LOG),
    on_bindings=on_bindings,
    describe_writes=describe_writes,
    list_coverage=list_memories_learnt,
    export_state=export_state,
    documents=DOCUMENTS,
    document_kinds=("memory",),
    scope_documents=SCOPE_DOCUMENTS,
    documents_change_with=(NAME,),
)
