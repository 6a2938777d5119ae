"""What a gang holds: its members on nodes, until when as far as anyone knows, and what is missing of its quorum."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from muster.model.gang import Gang
from muster.plan.ledger import Ints
from muster.plan.room import Part
from muster.plan.shapes import Shape
from muster.plan.waiting import Ask, Blueprint

NOWHERE = (-1, 0)
"""The domain of a gang that requires none, or holds no node at present."""


@dataclass(slots=True, eq=False)
class Holding:
    gang: Gang
    started: float
    end: float  # expected; inf when nobody knows
    parts: list[Part]
    blueprint: Blueprint
    what: Shape | None = None  # its plain shape, if it stands for itself and is counted by it
    domain: tuple[int, int] = NOWHERE  # the required domain it lives in
    succeeded: list[int] = field(default_factory=list)  # per role; they count for the quorum and hold nothing
    partial_since: float | None = None
    stopping: bool = False
    expired: bool = False  # its room is back already; the word that it is done is still to come

    @property
    def ask(self) -> Ask:
        return Ask(self.gang, self.blueprint)

    @property
    def uid(self) -> str:
        return self.gang.uid

    def held(self, role: int) -> int:
        return sum(part.members for part in self.parts if part.role == role)

    def members(self) -> int:
        return sum(part.members for part in self.parts)

    def missing(self) -> list[int]:
        """Per role: members short of the quorum."""
        done = self.succeeded or [0] * len(self.gang.roles)
        return [max(role.min - self.held(i) - done[i], 0) for i, role in enumerate(self.gang.roles)]

    def surplus(self) -> list[int]:
        return [max(self.held(i) - role.min, 0) for i, role in enumerate(self.gang.roles)]

    def nodes(self) -> Ints:
        return np.concatenate([part.nodes for part in self.parts]) if self.parts else np.zeros(0, dtype=np.int64)


def expected_end(gang: Gang, started: float) -> float:
    length = gang.length
    return inf if length is None else started + length
