"""The HTTP route of consolidation."""

from fastapi import APIRouter, Response

from app.chats.deps import WritingChat
from app.consolidation.regeneration import learn_again
from app.consolidation.schemas import LearnAgain, LearningAgain, NothingLearntAgain
from app.kit.auth import KeyedRoute
from app.kit.deps import Db, Now
from app.kit.wire import OrjsonResponse

router = APIRouter(prefix="/v1/chats/{chat_id}/consolidation", tags=["knowledge"], route_class=KeyedRoute)


@router.post(
    "/regenerate", status_code=202, response_model=LearningAgain, responses={200: {"model": NothingLearntAgain}}
)
async def regenerate_learnt(ref: WritingChat, db_session: Db, clock: Now, wanted: LearnAgain | None = None) -> Response:
    """Learn again from messages that were read without the model.

    What the model learns replaces the facts and memories that were learnt from these messages without it. What a person
    has changed, pinned or archived stays. So does the history of what a person set, replaced or forgot. If no answer of
    the model can be used, everything stays. Returns 200 if no messages were read without the model. Switching
    `consolidation.enabled` off cancels the work that is not done yet.
    """
    wanted = wanted or LearnAgain()
    again = await learn_again(db_session, ref, first_seq=wanted.first_seq, last_seq=wanted.last_seq, now=clock())
    answer = again._asdict()
    if again.work_id is None:
        answer.pop("work_id")
        return OrjsonResponse(answer)
    return OrjsonResponse(answer, status_code=202)
