"""Ask a vision model about the frames that agents see, from the thread in which the household is played."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

from mneme.core.errors import BadAnswer, BadInput
from mneme.models.asking.asking import Answered, ask
from mneme.models.asking.responders import check_sight
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.counters import Counters
from mneme.prompts.household.sight import OTHER, Box, Class, Frame, Marked, Sight, recognise_frame

if TYPE_CHECKING:  # what renders is an extra
    from mneme.environments.household.visual.perception import RecognisedBox
    from mneme.environments.household.visual.recognition import Picture

SEGMENT_PERCEPTION = "segments"
"""Perception from segments and depth, without a model."""


async def check_perception(context: HouseholdContext) -> None:
    """Check before the episode that the perception backend works. Raises BadInput, MnemeError."""
    if context.perception == SEGMENT_PERCEPTION:
        return
    if context.setting != "visual":
        raise BadInput(
            "perception: only members who see frames need a model that sees.", "Add --setting visual."
        )
    await check_sight(context.perception)


class Eyes:
    """The vision model of a run: called in a thread, it asks in the event loop that it was made in.

    `answers` are those that could be used, `lost` the frames without one.
    """

    def __init__(self, who: str) -> None:
        self._who, self._loop = who, asyncio.get_running_loop()
        self._asked: Future[Any] | None = None
        self._is_closed = False
        self.answers: list[Answered[Sight]] = []
        self.lost: list[BadAnswer] = []

    @classmethod
    def of(cls, context: HouseholdContext) -> "Eyes | None":
        """Return the eyes of a run, where a model recognises frames."""
        return None if context.perception == SEGMENT_PERCEPTION else cls(context.perception)

    def __call__(self, pictures: Sequence["Picture"]) -> Sequence[list["RecognisedBox"] | None]:
        """Return the objects in the boxes of each picture; none if no answer was usable."""
        if self._is_closed:
            raise CancelledError
        # In the run's loop, since the model's client and gate belong to it, not to the world's thread.
        self._asked = asyncio.run_coroutine_threadsafe(self._all(pictures), self._loop)
        found: Sequence[list[RecognisedBox] | None] = self._asked.result()
        return found

    def close(self) -> None:
        """Stop asking, since the thread's caller was cancelled."""
        self._is_closed = True  # the thread cannot be cancelled: its next frame ends it
        if self._asked is not None:
            self._asked.cancel()

    @property
    def counters(self) -> Counters:
        """Count the frames that were to be recognised, and those without a usable answer."""
        return Counters(frames=len(self.answers) + len(self.lost), blind=len(self.lost))

    async def _all(self, pictures: Sequence["Picture"]) -> Sequence[list["RecognisedBox"] | None]:
        return await asyncio.gather(*(self._recognised(picture) for picture in pictures))

    async def _recognised(self, picture: "Picture") -> list["RecognisedBox"] | None:
        given = frame_of(picture)
        try:
            answer = await ask(recognise_frame, given, self._who, lane="background")
        except BadAnswer as bad:
            self.lost.append(bad)
            return None
        self.answers.append(answer)
        return [_recognised(each, given.kinds) for each in answer.value.things]


def frame_of(picture: "Picture") -> Frame:
    """Return the question's input for a picture."""
    from mneme.environments.household.visual.recognition import PICTURE, look_of  # noqa: PLC0415  (an extra)

    return Frame(
        picture=picture.base64,
        size=PICTURE,
        boxes=[Box(**dict(zip(Box.model_fields, box, strict=True))) for box in picture.boxes],
        classes=[
            Class(name=name, kind=kind, look=look_of(name, kind)) for name, kind in picture.classes.items()
        ],
    )


def _recognised(marked: Marked, kinds: dict[str, str]) -> "RecognisedBox":
    """Return an answer in the world's form, without fields that do not apply to its class."""
    from mneme.environments.household.visual.perception import RecognisedBox  # noqa: PLC0415  (an extra)

    kind = kinds.get(marked.what, OTHER)
    is_held = kind == "object" and marked.relation != "-" and marked.holder >= 0
    return RecognisedBox.model_validate(
        {
            "what": marked.what,
            "is_open": marked.state == "open" if kind == "container" else None,
            "relation": marked.relation if is_held else "",
            "holder": marked.holder if is_held else None,
        }
    )
