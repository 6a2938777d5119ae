"""From seats to pods: which waiting member takes which seat of a plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.dialects.cluster import Key
from muster.dialects.reading import Member, Reading
from muster.model.gang import Seats


@dataclass(frozen=True, slots=True)
class Seat:
    """One pod, to be bound to one node."""

    key: Key
    namespace: str
    pod: str
    uid: str
    node: str


def assign(reading: Reading, seats: Sequence[Seats]) -> list[Seat]:
    """Members in rank order take seats in node order. Seats without a member yet stay held for it."""
    waiting = {part.role: iter(reading.waiting(part.role)) for part in seats}
    return [
        _seat(reading, member, node)
        for part in seats
        for node, member in zip(_one_by_one(part), waiting[part.role], strict=False)
    ]


def _one_by_one(seats: Seats) -> Iterator[str]:
    for node, count in zip(seats.nodes, seats.counts, strict=True):
        for _ in range(count):
            yield node


def _seat(reading: Reading, member: Member, node: str) -> Seat:
    return Seat(reading.key, reading.terms.namespace, member.name, member.uid, node)
