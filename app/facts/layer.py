"""The descriptor of the facts layer."""

from app.bindings.models import Binding
from app.facts.book import NAME
from app.facts.queries import DOCUMENTS, NEWEST_OF_CURRENT, NEWEST_OF_LINE, SCOPE_DOCUMENTS
from app.facts.routes import routers
from app.facts.segment import SEGMENT, contribute
from app.facts.settings import FactSettings
from app.facts.state import export_state
from app.facts.tools import FORGET_FACT, GET_FACTS, SET_FACT
from app.knowledge.coverage import list_facts_learnt
from app.knowledge.effects import describe_writes
from app.knowledge.liveness import MAY_KNOW
from app.knowledge.models import Statement, Teaching
from app.knowledge.service import on_bindings
from app.layers.layer import Layer

LAYER = Layer(
    name=NAME,
    settings=FactSettings,
    models=(Statement, Teaching, Binding),
    routers=routers,
    tools=(SET_FACT, GET_FACTS, FORGET_FACT),
    on_bindings=on_bindings,
    describe_writes=describe_writes,
    segments=(SEGMENT,),
    context_query=NEWEST_OF_LINE,
    current_query=NEWEST_OF_CURRENT,
    queried_if=MAY_KNOW,
    changes_with=(NAME,),
    contribute=contribute,
    list_coverage=list_facts_learnt,
    documents=DOCUMENTS,
    document_kinds=("fact",),
    scope_documents=SCOPE_DOCUMENTS,
    export_state=export_state,
)
