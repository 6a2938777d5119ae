"""Why a gang waits, in words its owner can act on."""

from typing import TYPE_CHECKING

import numpy as np

from muster.plan.waiting import Ask, Entry

if TYPE_CHECKING:
    from muster.plan.state import State


def why_never(state: "State", entry: Entry) -> str:
    """What the empty cluster lacks for it."""
    return "never"


_ = (Ask, np)
