"""`muster.sh/*` annotations and the values people write: read exactly, or told in one line and left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.dialects import acts, values
from muster.dialects.values import ValueReadError
from muster.dialects.wishes import KNOWN, PREFIX, Wishes, merged, read_promise, wishes
from muster.model.gang import Reservation
from muster.model.topology import Parallelism
from tests.dialects.scenes import Scene, sizes

LABEL = "pod-group.scheduling.sigs.k8s.io"


@pytest.mark.parametrize(
    ("key", "text", "field", "value"),
    [
        ("gang", "true", "gang", True),
        ("min", "4", "min", 4),
        ("max", "16", "max", 16),
        ("queue", "q", "queue", "q"),
        ("walltime", "2h30m", "walltime", 9000),
        ("walltime", "90", "walltime", 90),
        ("deadline", "2027-01-15T08:00:00Z", "deadline", 1_800_000_000),
        ("waiting-cost", "0.25", "waiting_cost", 0.25),
        ("topology-required", "topology.kubernetes.io/rack", "required", "topology.kubernetes.io/rack"),
        ("topology-preferred", "rack", "preferred", "rack"),
        ("domain-resources", "trees=1,power=300", "domain_resources", (("power", 300), ("trees", 1))),
        ("parallelism", "tp=8, pp=4,dp=16", "parallelism", Parallelism(8, 4, 16)),
        ("parallelism", "dp=2", "parallelism", Parallelism(1, 1, 2)),
        ("speedup", '{"16": 1.9, "8": 1}', "speedup", ((8, 1.0), (16, 1.9))),
        (
            "promise",
            '{"at": 7, "domain": "r1", "count": 3, "firm": false}',
            "promise",
            Reservation(7, "r1", 3, False),
        ),
        ("stopped", "preempted", "stopped", "preempted"),
    ],
)
def test_every_annotation_has_one_meaning(key: str, text: str, field: str, value: Any) -> None:
    found, problems = wishes("pod a", {PREFIX + key: text})
    assert problems == ()
    assert getattr(found, field) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("gang", "yes"),
        ("min", "0"),
        ("max", "1.5"),
        ("walltime", "soon"),
        ("walltime", "0s"),
        ("walltime", "1h-"),
        ("deadline", "tomorrow"),
        ("waiting-cost", "nan"),
        ("waiting-cost", "-1"),
        ("topology-required", "a rack"),
        ("domain-resources", "trees"),
        ("parallelism", "tp=8,tp=4"),
        ("parallelism", "tp=0"),
        ("speedup", "[1]"),
        ("speedup", '{"8": "fast"}'),
        ("speedup", '{"0": 1}'),
        ("promise", "{}"),
        ("colour", "blue"),
    ],
)
def test_what_cannot_be_read_is_left_out_and_told(key: str, text: str) -> None:
    found, problems = wishes("pod a", {PREFIX + key: text})
    assert found == Wishes()
    (problem,) = problems
    assert problem.field == PREFIX + key
    assert "\n" not in str(problem)
    assert "pod a" in problem.message
    assert not problem.fatal


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), st.text(max_size=80)))
def test_no_text_makes_reading_raise(texts: dict[str, str]) -> None:
    found, problems = wishes("pod a", texts)
    assert isinstance(found, Wishes)
    assert {each.field for each in problems} <= set(texts)


@given(st.text(max_size=120))
def test_parsers_refuse_with_a_fix_or_return(text: str) -> None:
    parsers = (values.count, values.duration, values.moment, values.rate, values.flag, values.names)
    for parse in (*parsers, values.parallelism, values.curve, values.amounts, read_promise):
        try:
            parse(text)
        except ValueReadError as error:
            assert str(error)


@given(st.floats(0, 4e9), st.text(max_size=20), st.integers(0, 10**6), st.booleans())
def test_a_promise_written_is_the_promise_read(at: float, domain: str, count: int, firm: bool) -> None:
    promise = Reservation(at, domain, count, firm)
    assert read_promise(acts.write_promise(promise)) == promise


def test_the_group_wins_over_the_owner_and_the_owner_over_the_pods_and_ours_over_borrowed() -> None:
    kueue = "kueue.x-k8s.io/podset-required-topology"
    layers: list[dict[str, str]] = [{PREFIX + "min": "1", kueue: "block"}, {PREFIX + "min": "2", "app": "x"}]
    assert merged(layers) == {PREFIX + "min": "2", PREFIX + "topology-required": "block"}
    assert merged([*layers, {PREFIX + "topology-required": "rack"}])[PREFIX + "topology-required"] == "rack"


def gang_of(minimum: int, members: int, gpus: int = 0, **annotations: str) -> Scene:
    world = Scene(
        "{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, "
        f"spec: {{minMember: {minimum}}}}}"
    )
    texts = {PREFIX + key.replace("_", "-"): text for key, text in annotations.items()}
    world.patch("PodGroup", "g", {"metadata": {"annotations": texts}})
    for number in range(members):
        requests = {"cpu": "1", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        world.pod(f"p-{number}", {LABEL: "g"}, requests=requests)
    return world


@pytest.mark.parametrize(
    ("text", "members", "gpus", "read"),
    [
        ("tp=2,pp=2", 4, 0, Parallelism(2, 2, 1)),
        ("tp=8,pp=2,dp=2", 4, 8, Parallelism(1, 2, 2)),
        ("tp=16,pp=2", 4, 8, Parallelism(2, 2, 1)),
        ("tp=4,pp=4,dp=2", 4, 8, Parallelism(1, 2, 2)),
        ("tp=2,pp=2,dp=8", 4, 8, Parallelism(1, 1, 4)),
    ],
)
def test_ranks_become_members(text: str, members: int, gpus: int, read: Parallelism) -> None:
    gang = gang_of(members, members, gpus, parallelism=text).gang().gang
    assert gang is not None
    assert gang.roles[0].parallelism == read


def test_a_product_that_fits_nothing_is_told_and_left_out() -> None:
    reading = gang_of(4, 4, 8, parallelism="tp=3").gang()
    assert reading.gang is not None
    assert reading.gang.roles[0].parallelism is None
    assert "tp x pp x dp is 3" in reading.problems[0].message


def test_a_maximum_narrows_or_is_told_to_be_wrong() -> None:
    assert sizes(gang_of(2, 6, max="4").gang()) == {"member": (2, 4, 0)}
    low = gang_of(2, 6, max="1", speedup='{"2": 2, "4": 1}').gang()
    assert sizes(low) == {"member": (2, 6, 0)}
    assert {each.field for each in low.problems} == {PREFIX + "max", PREFIX + "speedup"}


def test_the_shortest_limit_counts_and_a_promise_is_remembered_on_the_group() -> None:
    world = gang_of(1, 1, walltime="1h")
    world.patch("Pod", "p-0", {"spec": {"activeDeadlineSeconds": 60}})
    reading = world.gang()
    assert reading.gang is not None
    assert reading.gang.walltime == 60
    promise = Reservation(5.0, "r1", 1, True)
    world.send(acts.remember(reading, world.cluster(), promise))
    again = world.gang().gang
    assert again is not None
    assert again.promised == promise
    world.send(acts.remember(reading, world.cluster(), None))
    forgotten = world.gang().gang
    assert forgotten is not None
    assert forgotten.promised is None
