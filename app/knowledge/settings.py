"""The settings of learning, which facts and memories share. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import LayerSettings, Scope


class LearningSettings(LayerSettings):
    """The part of the section `memories` that other layers read, too."""

    section: ClassVar[str] = "memories"

    learn_scope: Scope = Field(
        "chat",
        description="The scope of learnt facts and memories, and of what tools write into facts and blocks; always "
        "`chat` in a chat without a user.",
    )
