"""Which member takes which seat: by rank, each member once, each seat once."""

from hypothesis import given
from hypothesis import strategies as st

from muster.control.seating import assign
from muster.model.gang import Seats
from tests.dialects.scenes import Scene

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 12
  completions: 12
  completionMode: Indexed
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
"""
INDEX = "batch.kubernetes.io/job-completion-index"


def job(members: int) -> Scene:
    scene = Scene(JOB)
    for index in reversed(range(members)):
        scene.pod(f"train-{index}", {INDEX: str(index)}, owner=("batch/v1", "Job", "train"))
    return scene


def test_ranks_follow_the_order_of_nodes() -> None:
    seats = assign(job(12).gang(), [Seats(0, ("b", "a"), (10, 2))])
    assert [(seat.pod, seat.node) for seat in seats] == [
        (f"train-{index}", "b" if index < 10 else "a") for index in range(12)
    ]
    assert {seat.uid for seat in seats} == {f"uid-pod-train-{index}" for index in range(12)}
    assert {seat.namespace for seat in seats} == {"default"}


def test_seats_of_members_that_do_not_exist_stay_empty() -> None:
    assert [seat.node for seat in assign(job(3).gang(), [Seats(0, ("a", "b"), (2, 10))])] == ["a", "a", "b"]


def test_members_on_nodes_take_no_other_seat() -> None:
    scene = job(3)
    scene.bind("train-1", "a")
    assert [seat.pod for seat in assign(scene.gang(), [Seats(0, ("a",), (11,))])] == ["train-0", "train-2"]


@given(st.integers(0, 8), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=5))
def test_however_the_seats_are_written_no_member_sits_twice(members: int, parts: list[tuple[str, int]]) -> None:
    seats = assign(job(members).gang() if members else Scene(JOB).gang(), [Seats(0, (n,), (c,)) for n, c in parts])
    nodes = [node for node, count in parts for _ in range(count)]
    assert [seat.pod for seat in seats] == [f"train-{index}" for index in range(min(members, len(nodes)))]
    assert [seat.node for seat in seats] == nodes[: len(seats)]
