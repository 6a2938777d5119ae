"""Policies: in which order gangs are looked at, how many hold a reservation, and how far others may pass them.

A policy is plain data. Orders are keys, least first, and compose: `priority+wfp3` looks at priority first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, log2

from muster.model.gang import Gang

DAY = 86400.0

Key = Callable[[Gang, float], float]


@dataclass(frozen=True, slots=True)
class Order:
    name: str
    key: Key
    moves: bool = False  # whether waiting changes it: then it is asked anew in every cycle


def _length(gang: Gang) -> float:
    length = gang.length
    return inf if length is None else max(length, 1.0)


def _wfp3(gang: Gang, now: float) -> float:
    return -(((now - gang.submitted) / _length(gang)) ** 3) * gang.members


def _unicef(gang: Gang, now: float) -> float:
    return -(now - gang.submitted) / (max(log2(gang.members), 1.0) * _length(gang))


def _laxity(gang: Gang, now: float) -> float:
    if gang.deadline is None:
        return inf
    return gang.deadline - now - (gang.length or 0.0)


def _cost(gang: Gang, _: float) -> float:
    """Cost of waiting per unit of work (Smith's rule)."""
    return -(gang.waiting_cost * gang.members) / (_length(gang) * gang.members)


ORDERS = {
    order.name: order
    for order in (
        Order("fifo", lambda gang, _: gang.submitted),
        Order("priority", lambda gang, _: -gang.priority),
        Order("sjf", lambda gang, _: _length(gang)),
        Order("wfp3", _wfp3, moves=True),
        Order("unicef", _unicef, moves=True),
        Order("edf", lambda gang, _: inf if gang.deadline is None else gang.deadline),
        Order("laxity", _laxity, moves=True),
        Order("cost", _cost),
        Order("las", lambda gang, _: gang.served),
    )
}

FIFO = (ORDERS["fifo"],)


@dataclass(frozen=True, slots=True)
class Policy:
    """`reservations`: how many blocked gangs are promised a start (None: all). Others may pass only around them."""

    name: str = "easy"
    order: tuple[Order, ...] = FIFO
    reservations: int | None = 1
    passing: bool = True  # False: nothing starts while a gang before it waits
    scan: Order | None = None  # order in which gangs are tried for backfill, where not the queue's
    whole: bool = True  # False: pods one by one, as a scheduler without gangs does
    age_bound: float = DAY  # a gang that waited this long goes first and keeps its place
    repair_grace: float = 60.0  # how long a partial gang may wait for its missing members

    @property
    def moves(self) -> bool:
        return any(order.moves for order in self.order)


BASES = {
    "fcfs": Policy("fcfs", reservations=0, passing=False),
    "easy": Policy("easy"),
    "easy-sjbf": Policy("easy-sjbf", scan=ORDERS["sjf"]),
    "conservative": Policy("conservative", reservations=None),
    "pods": Policy("pods", reservations=0, passing=False, whole=False),
}


def parse(text: str) -> Policy:
    """`base`, or `base:order+order` — `easy:wfp3`, `conservative:priority+fifo`, `easy-4` for four reservations.

    Raises ValueError with what exists.
    """
    base, _, orders = text.partition(":")
    policy = BASES.get(base)
    if policy is None:
        stem, _, number = base.rpartition("-")
        if stem != "easy" or not number.isdecimal() or int(number) < 1:
            raise ValueError(f"no policy {base!r}; there are {', '.join(BASES)} and easy-N (N reservations)")
        policy = replace(BASES["easy"], reservations=int(number))
    if not orders:
        return replace(policy, name=text)
    for name in orders.split("+"):
        if name not in ORDERS:
            raise ValueError(f"no order {name!r} in policy {text!r}; there are {', '.join(ORDERS)}")
    return replace(policy, name=text, order=tuple(ORDERS[name] for name in orders.split("+")))
