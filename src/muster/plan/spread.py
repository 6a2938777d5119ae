"""Seats for members that must lie apart, together or in balance: in which domains, and how many in each.

One constraint by itself is decided exactly, however many members: a balance by finding the highest floor that
can be reached, distance by one member per domain, togetherness by trying the domains. Constraints that cross
are met one member at a time over cells (nodes that no constraint tells apart); that never breaks one, but may
give up where a cleverer order would have found seats.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from muster.plan import pick
from muster.plan.labels import Bools, Ints
from muster.plan.limits import Limits, Quota

DOMAINS_TRIED = 64


def allocate(slots: Ints, need: int, limits: Limits) -> tuple[Ints, Ints] | None:
    """Nodes, ascending, and counts for `need` members that obey all limits, or None. Changes nothing.

    `slots` already has masks and caps per node in it.
    """
    if int(slots.sum()) < need:
        return None
    for view in islice(_in_one_domain(slots, need, limits.together), DOMAINS_TRIED):
        found = _allocate(view, need, limits)
        if found is not None:
            return found
    return None


def _in_one_domain(slots: Ints, need: int, together: Sequence[Ints]) -> Iterator[Ints]:
    """The slots of one domain at a time, those that hold them all with the least to spare first."""
    if not together:
        yield slots
        return
    open_ = slots > 0
    for codes in together:
        open_ = open_ & (codes >= 0)
    cells, number = _cells(together)
    room = _room(np.where(open_, slots, 0), cells, number)
    fitting = np.flatnonzero(room >= need)
    for cell in fitting[np.argsort(room[fitting], kind="stable")].tolist():
        yield np.where(open_ & (cells == cell), slots, 0)


def _allocate(slots: Ints, need: int, limits: Limits) -> tuple[Ints, Ints] | None:
    if limits.apart and not limits.quotas and len(limits.apart) == 1:
        cells, amounts = _one_each(slots, need, limits.apart[0])
    elif len(limits.quotas) == 1 and not limits.apart:
        cells, amounts = limits.quotas[0].domain, _balanced(slots, need, limits.quotas[0])
    elif limits.apart or limits.quotas:
        cells, amounts = _one_by_one(slots, need, limits)
    else:
        cells, amounts = np.zeros_like(slots), np.array([need])
    return None if amounts is None else _seats(slots, cells, amounts)


def _one_each(slots: Ints, need: int, codes: Ints) -> tuple[Ints, Ints | None]:
    """One member in each domain; nodes outside all domains take any number."""
    cells = codes + 1
    room = _room(slots, cells, int(cells.max()) + 1)
    room[1:] = np.minimum(room[1:], 1)
    return cells, _fill(room, need)


def _balanced(slots: Ints, need: int, quota: Quota) -> Ints | None:
    """Members per domain, so that none ends up over `max_skew` above the emptiest.

    Any such end can be reached one member at a time, lowest first. A higher floor only allows more, so the
    highest that can be reached decides.
    """
    least, most = _at_floor(quota, _highest_floor(slots, need, quota))
    room = np.minimum(_domain_room(slots, quota), most)
    rest = _fill(room - least, need - int(least.sum()))
    return None if rest is None else least + rest


def _highest_floor(slots: Ints, need: int, quota: Quota) -> int:
    if not _floor_counts(quota):
        return 0
    present, room = quota.present[quota.eligible], _domain_room(slots, quota)[quota.eligible]
    low, high = int(present.min()), int((present + room).min())
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.maximum(middle - present, 0).sum()) <= need:
            low = middle
        else:
            high = middle - 1
    return low


def _at_floor(quota: Quota, floor: int) -> tuple[Ints, Ints]:
    """The fewest and the most members each domain may get, if the emptiest ends at this floor."""
    most = np.where(quota.eligible, np.maximum(floor + quota.max_skew - quota.present, 0), 0)
    if not _floor_counts(quota):
        return np.zeros_like(most), most
    return np.where(quota.eligible, np.maximum(floor - quota.present, 0), 0), most


def _floor_counts(quota: Quota) -> bool:
    """With fewer domains than asked for, the emptiest counts as empty whatever is in it."""
    return int(quota.eligible.sum()) >= max(1, quota.min_domains)


def _domain_room(slots: Ints, quota: Quota) -> Ints:
    return _room(slots, quota.domain, quota.present.size)


def _one_by_one(slots: Ints, need: int, limits: Limits) -> tuple[Ints, Ints | None]:
    """Cells for members taken in turn, each where the domains it counts in are emptiest."""
    columns = [*limits.apart, *(quota.domain for quota in limits.quotas)]
    cells, number = _cells(columns)
    first = np.zeros(number, dtype=np.int64)
    first[cells[::-1]] = np.arange(cells.size)[::-1]
    room = _room(slots, cells, number)
    balance = [_Level(quota, quota.domain[first]) for quota in limits.quotas]
    rules: list[_Taken | _Level] = [*(_Taken(codes[first]) for codes in limits.apart), *balance]
    amounts = np.zeros(number, dtype=np.int64)
    for _ in range(need):
        open_ = room > amounts
        for rule in rules:
            open_ = open_ & rule.open()
        if not open_.any():
            return cells, None
        crowd = sum((each.level[each.codes] for each in balance), np.zeros(number, dtype=np.int64))
        cell = int(np.argmin(np.where(open_, crowd, np.iinfo(np.int64).max)))
        amounts[cell] += 1
        for rule in rules:
            rule.put(cell)
    return cells, amounts


class _Taken:
    """Which domains already have their one member."""

    def __init__(self, codes: Ints) -> None:
        self.codes = codes
        self.free = np.ones(int(codes.max(initial=-1)) + 2, dtype=bool)  # the last entry: no domain, always free

    def open(self) -> Bools:
        return self.free[self.codes]

    def put(self, cell: int) -> None:
        if self.codes[cell] >= 0:
            self.free[self.codes[cell]] = False


class _Level:
    """How full the domains of one balance are."""

    def __init__(self, quota: Quota, codes: Ints) -> None:
        self.quota = quota
        self.codes = codes
        self.level = np.append(quota.present, np.iinfo(np.int32).max)  # no domain: too full for anybody
        self.level[:-1][~quota.eligible] = np.iinfo(np.int32).max

    def open(self) -> Bools:
        floor = self.level[:-1][self.quota.eligible].min() if _floor_counts(self.quota) else 0
        return (self.level < floor + self.quota.max_skew)[self.codes]

    def put(self, cell: int) -> None:
        self.level[self.codes[cell]] += 1


def _cells(columns: Sequence[Ints]) -> tuple[Ints, int]:
    """Number the combinations of codes that occur, and give every node its number."""
    cells = np.zeros_like(columns[0])
    number = 1
    for codes in columns:
        _, cells = np.unique(cells * (int(codes.max(initial=-1)) + 2) + codes + 1, return_inverse=True)
        number = int(cells.max(initial=0)) + 1
    return cells, number


def _room(slots: Ints, cells: Ints, number: int) -> Ints:
    """Slots per cell; nodes in cell -1 are in none."""
    inside = cells >= 0
    room = np.zeros(number, dtype=np.int64)
    np.add.at(room, cells[inside], slots[inside])
    return room


def _fill(room: Ints, need: int) -> Ints | None:
    """How much of each entry to use, as few of them as possible; None if they do not suffice."""
    amounts = np.zeros_like(room)
    if need < 0 or int(room.sum()) < need:
        return None
    if need:
        chosen, many = pick.fullest_first(room, need)
        amounts[chosen] = many
    return amounts


def _seats(slots: Ints, cells: Ints, amounts: Ints) -> tuple[Ints, Ints] | None:
    """Nodes for the members of every cell, as few as possible in each."""
    nodes, counts = [], []
    order = np.argsort(cells, kind="stable")
    used = np.flatnonzero(amounts)
    begins, ends = np.searchsorted(cells[order], used), np.searchsorted(cells[order], used, side="right")
    for cell, begin, end in zip(used.tolist(), begins.tolist(), ends.tolist(), strict=True):
        members = order[begin:end]
        chosen, many = pick.fullest_first(slots[members], int(amounts[cell]))
        nodes.append(members[chosen])
        counts.append(many)
    if not nodes:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    found, taken = np.concatenate(nodes), np.concatenate(counts)
    order = np.argsort(found)
    return found[order], taken[order]
