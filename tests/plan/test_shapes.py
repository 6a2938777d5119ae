"""Slots kept up to date by counting, against slots computed from scratch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.model.gang import Role
from muster.model.node import Node
from muster.model.rules import Rules
from muster.plan.ledger import COMPACT_AFTER, Ledger
from muster.plan.room import Part, Present
from muster.plan.rules import Classes
from muster.plan.shapes import Shape, Shapes
from muster.plan.state import State
from tests.plan.small import GPU, gang, node, running

NODES = [
    Node("n0", {"cpu": 9, GPU: 4}, {"kind": "a"}),
    Node("n1", {"cpu": 5}, {"kind": "b"}),
    Node("n2", {"cpu": 7, GPU: 2}, {"kind": "a"}),
]
REQUESTS = [{"cpu": 1}, {"cpu": 2, GPU: 1}, {GPU: 2}, {GPU: 1, "cpu": 0}, {}, {"cpu": 3, "fpga": 1}]
RULES = [Rules(), Rules(node_selector=(("kind", "a"),))]


def shapes_over(ledger: Ledger) -> Shapes:
    return Shapes(ledger, Classes(ledger.nodes))


def slots_by_hand(ledger: Ledger, role: Role) -> list[int]:
    slots = []
    for i, each in enumerate(ledger.nodes):
        free = {name: int(ledger.free[row, i]) for name, row in ledger.resources.items()}
        room = [free.get(name, 0) // amount for name, amount in role.request.items() if amount]
        chosen = all(each.labels.get(key) == value for key, value in role.rules.node_selector)
        slots.append(max(min(room, default=1 << 20), 0) if chosen else 0)
    return slots


@given(st.data())
def test_slots_are_right_after_any_history(data: st.DataObject) -> None:
    ledger = Ledger(NODES)
    shapes, room = shapes_over(ledger), Present(ledger)
    roles = [Role("r", 1, request, rules=rules) for request in REQUESTS for rules in RULES]
    taken: list[Part] = []
    marks: list[tuple[int, int]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        act = data.draw(st.sampled_from(["take", "take", "give", "mark", "undo"]))
        if act == "take":
            shape = shapes.of(data.draw(st.sampled_from(roles)))
            open_ = np.flatnonzero(room.slots(shape))
            if len(open_):
                taken.append(Part(0, shape, open_[:1], np.array([1]), 1))
                room.take(taken[-1])
        elif act == "give" and len(taken) > (marks[-1][1] if marks else 0):
            room.give(taken.pop())
        elif act == "mark":
            marks.append((ledger.mark(), len(taken)))
        elif act == "undo" and marks:
            mark, number = marks.pop()
            ledger.undo(mark)
            del taken[number:]
        looked_at = data.draw(st.sampled_from(roles))
        assert room.slots(shapes.of(looked_at)).tolist() == slots_by_hand(ledger, looked_at)
        assert room.total(shapes.of(looked_at)) == sum(slots_by_hand(ledger, looked_at))


def test_equal_requests_in_any_order_are_one_shape() -> None:
    shapes = shapes_over(Ledger(NODES))
    one = shapes.of(Role("a", 1, {"cpu": 2, GPU: 1}))
    assert shapes.of(Role("b", 9, {GPU: 1, "cpu": 2})) is one
    assert shapes.of(Role("c", 1, {"cpu": 2, GPU: 2})) is not one
    assert shapes.of(Role("d", 1, {"cpu": 2, GPU: 1}, rules=RULES[1])) is not one
    assert len(shapes.all) == 3


def test_what_no_node_has_leaves_no_slots() -> None:
    shape = shapes_over(Ledger(NODES)).of(Role("r", 1, {"cpu": 1, "fpga": 1}))
    assert (shape.impossible, shape.total, shape.most) == (True, 0, 0)


def test_a_cache_that_fell_far_behind_starts_over() -> None:
    ledger = Ledger(NODES)
    shape: Shape = shapes_over(ledger).of(Role("r", 1, {"cpu": 1}))
    for _ in range(COMPACT_AFTER + 1):
        ledger.take(np.array([0]), ((ledger.resources["cpu"], 1),), np.array([1]))
        ledger.give(np.array([0]), ((ledger.resources["cpu"], 1),), np.array([1]))
    ledger.take(np.array([1]), ((ledger.resources["cpu"], 1),), np.array([2]))
    shape.refresh()
    assert (shape.slots.tolist(), shape.total) == ([9, 3, 7], 19)


def test_who_bound_too_much_to_one_node_takes_nothing_from_the_others() -> None:
    state = State([node("n0"), node("n1")])
    for uid in ("a", "b"):
        state.adopt(running(gang(uid, 4), 0.0, {"n0": 4}))
    shape = state.shapes.of(gang("c", 4).roles[0])
    assert (state.present.slots(shape).tolist(), state.present.total(shape)) == ([0, 4], 4)
    state.finish("a", 1.0)
    assert state.present.slots(shape).tolist() == [0, 4]
    state.finish("b", 2.0)
    assert state.present.slots(shape).tolist() == [4, 4]
