"""Numbering what jobs held: nobody shares a slot, everybody has as many as asked for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from muster.model.gang import Gang, Role
from muster.model.node import Node
from muster.sim.outcome import History, Outcome
from muster.sim.slots import assign, interval_set
from muster.sim.workload import Job, Workload
from tests.sim.fake import first_come, job, machine

SHAPES = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 99), st.integers(1, 9)), min_size=1, max_size=40)


@given(SHAPES)
def test_slots_are_never_shared_and_always_enough(shapes: list[tuple[int, int, int]]) -> None:
    jobs = tuple(job(str(i), submit, run, size) for i, (submit, run, size) in enumerate(sorted(shapes)))
    history = first_come(Workload("w", jobs), 8)
    slots = assign(history, machine(8))
    for outcome, ranges in zip(history.outcomes, slots.held, strict=True):
        width = sum(high - low for low, high in ranges)
        assert width == (0 if outcome.started is None else outcome.job.gang.members)
        assert all(0 <= low < high <= 8 for low, high in ranges)
        assert all(before[1] < after[0] for before, after in pairwise(ranges))
    for i, first in enumerate(history.outcomes):
        for j, second in enumerate(history.outcomes[:i]):
            if overlap(first, second):
                taken = {slot for low, high in slots.held[j] for slot in range(low, high)}
                assert not taken & {slot for low, high in slots.held[i] for slot in range(low, high)}


def overlap(first: Outcome, second: Outcome) -> bool:
    if first.started is None or second.started is None:
        return False
    return first.started < (second.finished or 0) and second.started < (first.finished or 0)


def test_nodes_are_numbered_through_in_their_order() -> None:
    nodes = tuple(Node(name, {"nvidia.com/gpu": 4}) for name in ("a", "b", "c"))
    gang = Gang("g", (Role("w", 3, {"nvidia.com/gpu": 2}),), 0.0)
    outcome = Outcome(Job(gang, 5.0, "g"), 0.0, 5.0, nodes=(("c", 1), ("a", 2)))
    slots = assign(history([outcome], 12, "nvidia.com/gpu"), nodes)
    assert (slots.count, slots.first) == (12, {"a": 0, "b": 4, "c": 8})
    assert slots.held == [((0, 4), (8, 10))]
    assert slots.asked(outcome) == 6


def test_shared_cards_are_cut_into_what_all_shares_are_multiples_of() -> None:
    unit = "nvidia.com/gpu-milli"
    roles = [(Role("p", 1, {unit: share}),) for share in (500, 250)]
    outcomes = [Outcome(Job(Gang(str(i), r, 0.0), 5.0, str(i)), 0.0, 5.0, (("a", 1),)) for i, r in enumerate(roles)]
    slots = assign(history(outcomes, 1, unit), (Node("a", {unit: 1000}),))
    assert (slots.count, slots.held) == (4, [((0, 2),), ((2, 3),)])


def test_a_job_that_counts_nothing_holds_no_slot() -> None:
    outcome = Outcome(Job(Gang("g", (Role("w", 1, {"cpu": 1}),), 0.0), 5.0, "g"), 0.0, 5.0, nodes=(("a", 1),))
    slots = assign(history([outcome], 4, "nvidia.com/gpu"), (Node("a", {"nvidia.com/gpu": 4}),))
    assert slots.held == [()]


def test_sets_are_written_as_evalys_reads_them() -> None:
    assert interval_set([(0, 4), (7, 8)]) == "0-3 7"
    assert interval_set([]) == ""


def history(outcomes: list[Outcome], capacity: int, unit: str) -> History:
    jobs = tuple(outcome.job for outcome in outcomes)
    return History(Workload("w", jobs), "easy", "batch", outcomes, capacity, unit, 0.0, 1)
