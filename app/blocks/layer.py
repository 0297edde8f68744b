"""The descriptor of the layer of core blocks."""

from app.bindings.models import Binding
from app.blocks.book import NAME
from app.blocks.queries import BLOCKS_OF_LINE
from app.blocks.routes import routers
from app.blocks.segment import SEGMENT, contribute
from app.blocks.settings import BlockSettings
from app.blocks.state import export_state
from app.blocks.tools import MEMORY_BLOCK_UPDATE
from app.knowledge.effects import describe_writes
from app.knowledge.liveness import MAY_KNOW
from app.knowledge.models import Statement, Teaching
from app.knowledge.service import on_bindings
from app.layers.layer import Layer

LAYER = Layer(
    name=NAME,
    settings=BlockSettings,
    models=(Statement, Teaching, Binding),
    routers=routers,
    tools=(MEMORY_BLOCK_UPDATE,),
    on_bindings=on_bindings,
    describe_writes=describe_writes,
    segments=(SEGMENT,),
    context_query=BLOCKS_OF_LINE,
    queried_if=MAY_KNOW,
    changes_with=(NAME, "memories"),
    contribute=contribute,
    export_state=export_state,
)
