"""The layer of scenes and their running recap."""

from app.layers.layer import Layer
from app.layers.stored_forms import CachedNarrative
from app.layers.stored_json import IsoTime, Number, StoredJson
from app.narratives.models import NarrativeVersion
from app.scenes.changes import on_change, on_move, on_settings_changed, on_truncate
from app.scenes.detection.detect_job import DETECT_BREAK
from app.scenes.detection.forced_wait import END_WAIT, seeks_edges
from app.scenes.folding import RECAP as RUNNING_RECAP
from app.scenes.handlers import covered_through, list_coverage, list_edges, on_append, refresh_cache, request_coverage
from app.scenes.hide_job import HIDE_SCENES
from app.scenes.lifecycle import on_cut
from app.scenes.models import Scene
from app.scenes.prompts import RECAP, SCENE_BREAK, SCENE_RECAP
from app.scenes.queries import DOCUMENTS
from app.scenes.recap_job import FOLD_RECAP
from app.scenes.routes import recap_router, router
from app.scenes.scene_job import MAKE_SCENE_RECAP
from app.scenes.schedule import NAME
from app.scenes.segment import FORMER_RECAP, SEGMENT, contribute
from app.scenes.settings import SCENE_EDGES, SceneSettings


class StoredScene(StoredJson):
    """`OpenScene` of `open_scene.py`, the layer's cursor."""

    first_seq: Number | None = None
    count: Number | None = None
    unjudged: Number | None = None
    judged_seq: Number = 0
    after_pause: bool = False
    hide_in: Number = 0
    waits_since: IsoTime | None = None


LAYER = Layer(
    name=NAME,
    settings=SceneSettings,
    cursor=StoredScene,
    cached=CachedNarrative,
    also_known_as=(RUNNING_RECAP.layer,),
    models=(Scene, NarrativeVersion),
    jobs=(DETECT_BREAK, END_WAIT, FOLD_RECAP, HIDE_SCENES, MAKE_SCENE_RECAP),
    routers=(router, recap_router),
    prompts=(SCENE_BREAK, SCENE_RECAP, RECAP),
    on_append=on_append,
    on_change=on_change,
    on_truncate=on_truncate,
    on_move=on_move,
    on_settings_changed=on_settings_changed,
    on_cut=on_cut,
    covered_through=covered_through,
    request_coverage=request_coverage,
    list_coverage=list_coverage,
    edges=SCENE_EDGES,
    adds_edges_late=True,
    list_edges=list_edges,
    seeks_edges=seeks_edges,
    refresh_cache=refresh_cache,
    segments=(SEGMENT,),
    context_query=FORMER_RECAP,
    contribute=contribute,
    documents=DOCUMENTS,
    document_kinds=("recap", "scene"),
)
