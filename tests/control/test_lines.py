"""Who stands below whom."""

from hypothesis import given
from hypothesis import strategies as st

from muster.control.lines import Lines, line_of
from muster.dialects.cluster import Name
from muster.objects.owners import ObjectMeta
from tests.dialects.scenes import Scene

NAMES: list[Name] = [("batch", "Job", "default", name) for name in "abc"]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.none() | st.lists(st.sampled_from(NAMES), unique=True))))
def test_the_index_is_the_last_line_of_each(steps: list[tuple[str, list[Name] | None]]) -> None:
    lines, last = Lines[str](), dict[str, list[Name]]()
    for item, names in steps:
        if names is None:
            lines.drop(item)
            last.pop(item, None)
        else:
            lines.put(item, names)
            last[item] = names
    for name in NAMES:
        assert sorted(lines.below(name)) == sorted(item for item, names in last.items() if name in names)
    assert set(lines.heirs) == {name for names in last.values() for name in names}


def test_a_line_ends_at_the_first_owner_nobody_knows() -> None:
    scene = Scene()
    scene.pod("p", owner=("batch/v1", "Job", "inner"))
    (pod,) = scene.pods()
    inner = ("batch", "Job", "default", "inner")
    assert line_of(pod.metadata, scene.cluster()) == (inner,)
    owner = "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: s, uid: u, controller: true}"
    scene.apply(
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: inner, ownerReferences: [{owner}]}}\n"
        "spec: {template: {spec: {containers: []}}}"
    )
    assert line_of(pod.metadata, scene.cluster()) == (inner, ("jobset.x-k8s.io", "JobSet", "default", "s"))


def test_pods_of_a_leader_worker_set_name_it_in_a_label() -> None:
    meta = ObjectMeta(namespace="default", labels={"leaderworkerset.sigs.k8s.io/name": "s"})
    found = line_of(meta, Scene().cluster())
    assert found == (("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "default", "s"),)
