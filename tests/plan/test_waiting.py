"""The queue: its order against a plain sort, and what makes two gangs of one kind."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.gang import Gang, Reservation, Role
from muster.model.rules import HostPort, PodSelector, PodTerm, PreferredPods, Requirement, Rules
from muster.model.topology import Closeness, Parallelism
from muster.plan.policy import Policy, parse
from muster.plan.state import State
from muster.plan.waiting import Entry, by_time, minds_company
from tests.plan.small import GPU, RACKS, gang, racks

NEAR = PodTerm(PodSelector((Requirement("app", "Exists"),)), "rack")


def state(policy: str = "easy", age_bound: float = 50.0) -> State:
    return State(racks((4, 4)), RACKS, replace(parse(policy), age_bound=age_bound))


def ordered(one: State) -> list[str]:
    """Kind by kind, merged: the order in which a pass looks at them."""
    kinds = [kind.entries for kind in one.queue.kinds.values()]
    for entries in kinds:
        assert entries == sorted(entries, key=lambda e: e.rank)
    return [entry.uid for entry in sorted((e for es in kinds for e in es), key=lambda e: e.rank)]


def expected(gangs: list[Gang], policy: Policy, now: float) -> list[str]:
    """Priority classes first; in each the aged by submission, then the policy, then submission and arrival."""

    def rank(number: int) -> tuple[object, ...]:
        one = gangs[number]
        classes = [o.key(one, now) for o in policy.order if o.name == "priority"]
        others = [o.key(one, now) for o in policy.order if o.name != "priority"]
        if now - one.submitted >= policy.age_bound:
            return (*classes, 0, one.submitted, number)
        return (*classes, 1, *others, one.submitted, number)

    return [gangs[number].uid for number in sorted(range(len(gangs)), key=rank)]


@given(
    st.sampled_from(["easy", "easy:priority+sjf", "easy:sjf", "easy:wfp3", "easy:laxity", "easy:las+priority"]),
    st.lists(
        st.tuples(st.integers(0, 90), st.integers(1, 3), st.integers(1, 9), st.integers(0, 1), st.integers(0, 8)),
        max_size=10,
    ),
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
)
def test_the_queue_is_in_order_at_every_moment(
    policy: str, wishes: list[tuple[int, int, int, int, int]], waits: list[int]
) -> None:
    one, now = state(policy), 90.0
    gangs = [
        gang(
            f"g{i}",
            size,
            submitted=float(at),
            walltime=float(length),
            priority=urgent,
            deadline=100.0 + at,
            served=left,
        )
        for i, (at, size, length, urgent, left) in enumerate(wishes)
    ]
    for each in gangs:
        one.submit(each)
    for wait in waits:
        now += wait
        one.queue.age(now)
        assert ordered(one) == expected(gangs, one.policy, now)
    for each in gangs[::2]:
        one.withdraw(each.uid)
    assert ordered(one) == expected_without(gangs, one.policy, now)
    assert all(kind.entries for kind in one.queue.kinds.values())


def expected_without(gangs: list[Gang], policy: Policy, now: float) -> list[str]:
    gone = {each.uid for each in gangs[::2]}
    return [uid for uid in expected(gangs, policy, now) if uid not in gone]


def test_age_is_news_only_when_someone_comes_of_it() -> None:
    one = state()
    for uid, at in (("a", 0.0), ("b", 30.0)):
        one.submit(gang(uid, 9, submitted=at))
    assert [one.queue.age(now) for now in (10.0, 49.9, 50.0, 60.0, 79.9, 80.0, 500.0)] == [
        False,
        False,
        True,
        False,
        False,
        True,
        False,
    ]


def kinds(*gangs: Gang) -> int:
    one = state()
    for each in gangs:
        one.submit(each)
    return len(one.queue.kinds)


def special(closeness: Closeness = Closeness(), namespace: str = "", **role: object) -> Gang:
    known = {"name": "worker", "min": 2, "request": {GPU: 1}, **role}
    return Gang("g", (Role(**known),), 0.0, namespace=namespace, closeness=closeness)  # type: ignore[arg-type]


def test_what_does_not_matter_for_room_does_not_part_kinds() -> None:
    other = gang("b", 2, submitted=5.0, walltime=None, priority=3, namespace="elsewhere", user="u")
    assert kinds(gang("a", 2), other) == 1
    assert kinds(special(Closeness("rack")), replace(special(Closeness("rack"), "elsewhere"), uid="h")) == 1


@pytest.mark.parametrize(
    "other",
    [
        special(min=3),
        special(request={GPU: 2}),
        special(Closeness("rack")),
        special(Closeness("rack", resources=(("trees", 1),))),
        special(parallelism=Parallelism(2)),
        special(rules=Rules(node_selector=(("rack", "r0"),))),
        special(rules=Rules(host_ports=(HostPort(80),))),
    ],
)
def test_what_matters_for_room_parts_kinds(other: Gang) -> None:
    assert kinds(special(), replace(other, uid="other")) == 2


def test_where_company_matters_labels_and_namespace_part_kinds() -> None:
    rules = Rules(near=(NEAR,))
    one = special(rules=rules)
    assert kinds(one, replace(special(rules=rules), uid="h")) == 1
    assert kinds(one, replace(special(rules=rules, namespace="x"), uid="h")) == 2
    assert kinds(one, replace(special(rules=rules, labels={"app": "a"}), uid="h")) == 2


@pytest.mark.parametrize(
    ("one", "simple", "minds"),
    [
        (special(), True, False),
        (special(Closeness(preferred="rack")), True, False),
        (special(Closeness("rack")), False, False),
        (special(parallelism=Parallelism(dp=4)), True, False),
        (special(parallelism=Parallelism(tp=2)), False, False),
        (special(rules=Rules(near=(NEAR,))), False, True),
        (special(rules=Rules(pods_preferred=(PreferredPods(1, NEAR),))), False, False),
        (special(rules=Rules(host_ports=(HostPort(1),))), False, True),
    ],
)
def test_only_one_plain_role_is_a_matter_of_counting(one: Gang, simple: bool, minds: bool) -> None:
    entry = state().asker.entry((one,), 1)
    here = state()
    here.submit(one)
    assert (here.queue.entries["g"].kind.single is not None) == simple
    assert minds_company(entry) == minds


def test_a_group_waits_as_one_entry_once_all_of_it_is_here() -> None:
    one = state()
    members = [gang(uid, 1, group="pair", group_size=2, walltime=length) for uid, length in (("b", 5.0), ("a", 9.0))]
    one.submit(members[0])
    assert not one.queue.entries
    one.submit(members[1])
    (entry,) = one.queue.entries.values()
    assert (entry.uid, [ask.gang.uid for ask in entry.asks], entry.length) == ("pair", ["a", "b"], 9.0)
    assert entry.kind.single is None


def test_promises_fall_due_in_time_order() -> None:
    one = state()
    entries: list[Entry] = []
    for uid, at in (("late", 90.0), ("soon", 10.0), ("none", None)):
        promised = None if at is None else Reservation(at, since=3.0)
        entries.append(one.asker.entry((gang(uid, 1, promised=promised),), len(entries)))
    assert [entry.uid for entry in sorted(entries, key=by_time)] == ["soon", "late", "none"]
    assert [(entry.promised, entry.since) for entry in entries] == [(90.0, 3.0), (10.0, 3.0), (None, 0.0)]


def test_of_unknown_length_is_for_ever() -> None:
    one = state()
    assert one.asker.entry((gang("a", 1, walltime=None),), 1).length == inf
