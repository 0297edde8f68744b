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
    """Learn facts and memories again from messages that were read without the model.

    Once the model has answered, the facts and quotations that rules have learnt from these messages are deleted, and
    what the model learns is stored. Those that a person has changed, pinned or archived stay, and so do the former
    values of what a person set, replaced or forgot, also if the person did so in this chat alone. A value that rules
    have learnt after the person set the key is deleted like the others. If facts or memories are off, the chat keeps
    those that it has. If no answer of the model can be used, everything stays. If no model is configured, the rules
    read the messages once more. Returns 200 if there are no such messages.
    """
    wanted = wanted or LearnAgain()
    again = await learn_again(db_session, ref, first_seq=wanted.first_seq, last_seq=wanted.last_seq, now=clock())
    answer = again._asdict()
    if again.work_id is None:
        answer.pop("work_id")
        return OrjsonResponse(answer)
    return OrjsonResponse(answer, status_code=202)
