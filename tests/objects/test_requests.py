"""What pods ask for, counted as Kubernetes counts it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.decode import ObjectError, from_object
from muster.objects.pods import Pod
from muster.objects.requests import pod_footprint, pod_requests

Tree = dict[str, Any]


def container(
    asked: Tree | None = None,
    name: str = "main",
    limits: Tree | None = None,
    sidecar: bool = False,
    **more: str,
) -> Tree:
    """A container that requests e.g. cpu="1"."""
    tree: Tree = {"name": name, "resources": {"requests": {**(asked or {}), **more}}}
    if limits is not None:
        tree["resources"]["limits"] = limits
    if sidecar:
        tree["restartPolicy"] = "Always"
    return tree


def requests(status: Tree | None = None, **spec: Any) -> dict[str, int]:
    """The requests of a pod with this spec."""
    tree = {"metadata": {"name": "p", "namespace": "team"}, "spec": spec, "status": status or {}}
    return pod_requests(from_object(tree, Pod))


def test_containers_add_up() -> None:
    assert requests(containers=[container(cpu="1", memory="1Gi"), container({"nvidia.com/gpu": "8"}, cpu="500m")]) == {
        "cpu": 1500,
        "memory": 2**30,
        "nvidia.com/gpu": 8,
    }


def test_fractions_are_rounded_once_at_the_end() -> None:
    assert requests(containers=[container(memory="500m"), container(memory="500m")]) == {"memory": 1}
    assert requests(containers=[container(cpu="1n"), container(cpu="1n")]) == {"cpu": 2}


def test_zeros_are_left_out_and_nothing_is_nothing() -> None:
    assert requests(containers=[container(cpu="0", memory="0Gi")]) == {}
    assert requests() == {}


def test_limits_stand_in_for_missing_requests_one_by_one() -> None:
    asked = container(limits={"cpu": "4", "memory": "8Gi"}, cpu="1")
    assert requests(containers=[asked]) == {"cpu": 1000, "memory": 8 * 2**30}
    assert requests(containers=[container(limits={"cpu": "4"}, cpu="0")]) == {}


def test_the_largest_init_container_counts_if_larger_than_the_sum() -> None:
    small, large = container(cpu="1", memory="1Gi"), container(cpu="3", memory="512Mi")
    main = [container(cpu="1"), container(cpu="1", memory="768Mi")]
    assert requests(containers=main, initContainers=[small, large]) == {"cpu": 3000, "memory": 2**30}
    assert requests(containers=main, initContainers=[small]) == {"cpu": 2000, "memory": 2**30}


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        ([("s", 2), ("i", 5)], 7000),  # the sidecar is running while the init container runs
        ([("i", 5), ("s", 2)], 5000),  # and is not, if it comes after
        ([("s", 2), ("i", 1), ("s", 3)], 6000),  # both sidecars stay beside the main container
        ([("s", 1), ("s", 1), ("i", 9), ("s", 1)], 11000),
        ([("s", 1), ("i", 2), ("s", 1), ("i", 3)], 5000),
        ([("i", 1), ("i", 1)], 1000),
    ],
)
def test_sidecars_add_to_what_starts_after_them(init: list[tuple[str, int]], cpu: int) -> None:
    started = [container(name=f"c{i}", sidecar=kind == "s", cpu=str(n)) for i, (kind, n) in enumerate(init)]
    assert requests(containers=[container(cpu="1")], initContainers=started) == {"cpu": cpu}


def test_overhead_comes_on_top() -> None:
    overhead = {"cpu": "250m", "memory": "120Mi"}
    assert requests(containers=[container(cpu="1")], overhead=overhead) == {
        "cpu": 1250,
        "memory": 120 * 2**20,
    }


def test_pod_level_requests_replace_the_sum_for_what_they_name() -> None:
    main = [container({"nvidia.com/gpu": "1"}, cpu="1", memory="1Gi")]
    level = {"requests": {"cpu": "5", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}}
    assert requests(containers=main, resources=level, overhead={"cpu": "1"}) == {
        "cpu": 6000,
        "memory": 2**30,
        "hugepages-2Mi": 4 * 2**20,
        "nvidia.com/gpu": 1,
    }


def test_pod_level_limits_stand_in_where_nobody_requests() -> None:
    level = {"limits": {"cpu": "4", "memory": "8Gi"}}
    assert requests(containers=[container(cpu="1")], resources=level) == {"cpu": 1000, "memory": 8 * 2**30}
    assert requests(containers=[container()], resources=level) == {"cpu": 4000, "memory": 8 * 2**30}


def _status(
    allocated: Tree | None = None, actual: Tree | None = None, name: str = "main", infeasible: bool = False
) -> Tree:
    each: Tree = {"name": name}
    if allocated is not None:
        each["allocatedResources"] = allocated
    if actual is not None:
        each["resources"] = {"requests": actual}
    resize = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return {"containerStatuses": [each], "conditions": resize if infeasible else []}


@pytest.mark.parametrize(
    ("asked", "status", "cpu"),
    [
        ("2", _status(allocated={"cpu": "1"}, actual={"cpu": "1"}), 2000),  # growing: hold what is asked
        ("1", _status(allocated={"cpu": "2"}, actual={"cpu": "2"}), 2000),  # shrinking: hold what is there
        ("1", _status(allocated={"cpu": "1"}, actual={"cpu": "3"}), 3000),
        ("1", _status(allocated={"cpu": "3"}), 3000),
        ("9", _status(allocated={"cpu": "1"}, actual={"cpu": "1"}, infeasible=True), 1000),
        ("9", _status(infeasible=True, actual={"cpu": "1"}), 1000),
        ("2", _status(allocated={"cpu": "9"}, name="other"), 2000),
    ],
)
def test_during_a_resize_the_largest_counts(asked: str, status: Tree, cpu: int) -> None:
    assert requests(status, containers=[container(cpu=asked)]) == {"cpu": cpu}


def test_whole_pod_figures_win_over_those_of_containers() -> None:
    status = {
        **_status(allocated={"cpu": "9"}),
        "allocatedResources": {"cpu": "2"},
        "resources": {"requests": {"cpu": "3"}},
    }
    assert requests(status, containers=[container(cpu="1")]) == {"cpu": 3000}
    level = {"requests": {"cpu": "4", "memory": "1Gi"}}
    assert requests(status, containers=[container(cpu="1")], resources=level) == {
        "cpu": 4000,
        "memory": 2**30,
    }


def test_a_footprint_takes_a_pod_slot() -> None:
    pod = from_object({"spec": {"containers": [container(cpu="1")]}}, Pod)
    assert pod_footprint(pod) == {"cpu": 1000, "pods": 1}


@pytest.mark.parametrize(("cpu", "said"), [("one", "'one' is not a suffix"), ("-1", "cannot be negative")])
def test_bad_amounts_name_the_pod(cpu: str, said: str) -> None:
    with pytest.raises(ObjectError, match=f"^pod team/p: .*{said}"):
        requests(containers=[container(cpu=cpu)])


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 9).map(str), max_size=3)
plain = st.lists(amounts.map(container), max_size=4)
mixed = st.lists(st.tuples(amounts, st.booleans()).map(lambda each: container(each[0], sidecar=each[1])), max_size=4)


@given(plain, plain, st.randoms())
def test_order_of_containers_does_not_matter_without_sidecars(main: list[Tree], init: list[Tree], rng: Any) -> None:
    before = requests(containers=main, initContainers=init)
    rng.shuffle(main)
    rng.shuffle(init)
    assert requests(containers=main, initContainers=init) == before


@given(plain, mixed, mixed, amounts)
def test_more_asks_for_no_less(main: list[Tree], init: list[Tree], more: list[Tree], extra: Tree) -> None:
    before = requests(containers=main, initContainers=init)
    for after in (
        requests(containers=[*main, container(extra)], initContainers=init),
        requests(containers=main, initContainers=[*init, *more]),
        requests(containers=main, initContainers=init, overhead=extra),
    ):
        assert all(after.get(name, 0) >= each for name, each in before.items())


@given(plain, mixed)
def test_at_every_moment_what_runs_is_covered(main: list[Tree], init: list[Tree]) -> None:
    """Start the pod step by step and add up what is running at each."""
    total = requests(containers=main, initContainers=init)
    staying: list[Tree] = []
    moments = []
    for each in init:
        moments.append([*staying, each])
        if "restartPolicy" in each:
            staying.append(each)
    moments.append([*staying, *main])
    peak: dict[str, int] = {}
    for moment in moments:
        for name, running in requests(containers=moment).items():
            peak[name] = max(peak.get(name, 0), running)
    assert total == peak
