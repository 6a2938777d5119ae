"""The scheduler against the local cluster: what a user sees of gangs that start whole or wait with a reason."""

from pathlib import Path

from tests.control.live import Live, indexed, job, on, pod_group, pod_spec

LABEL = "pod-group.scheduling.sigs.k8s.io"


def test_a_pod_group_and_its_job_run_together(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(pod_group("train", 3), job("train", 3, labels={LABEL: "train"}))
        await cluster.until(lambda: cluster.running() == 3, "three pods running")

        def status() -> dict[str, object]:
            found = cluster.whole.api.access.get("scheduling.sigs.k8s.io/podgroups", "default", "train")
            return dict(found.get("status", {}))

        await cluster.until(lambda: status().get("running") == 3, "the group's status counts them")

    on(2, 8, tmp_path, test)


def test_a_quota_that_stops_members_keeps_the_gang_waiting_and_said_why(tmp_path: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}

    async def test(cluster: Live) -> None:
        cluster.apply(quota, pod_group("train", 3), job("train", 4, labels={LABEL: "train"}))
        await cluster.until(lambda: cluster.messages() == {"2 of 3 members of train exist"}, "the reason on the pods")
        assert len(cluster.pods()) == 2
        assert cluster.bound() == []
        cluster.whole.api.access.delete("resourcequotas", "default", "q")
        await cluster.until(lambda: cluster.running() == 4, "all four running")

    on(2, 8, tmp_path, test)


def test_two_gangs_never_share_what_only_one_can_use(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(indexed("one", 4), indexed("two", 4))
        await cluster.until(lambda: cluster.running() == 4, "one gang runs")
        await cluster.until(lambda: len(cluster.messages()) == 1, "the other says why it waits")
        first, second = ("one", "two") if cluster.running("one") else ("two", "one")
        assert (cluster.running(first), len(cluster.bound(second))) == (4, 0)
        assert "needs 4 × 1 GPU; the cluster lacks room for 4" in next(iter(cluster.messages(second)))
        cluster.whole.api.access.delete("batch/jobs", "default", first, propagation="Background")
        await cluster.until(lambda: cluster.running(second) == 4, "the other runs once the first is gone")

    on(1, 4, tmp_path, test)


def test_a_gang_larger_than_the_cluster_waits_and_smaller_ones_run(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(indexed("huge", 5), indexed("small", 2))
        await cluster.until(lambda: cluster.running("small") == 2, "the small one runs")
        await cluster.until(lambda: bool(cluster.messages("huge")), "the huge one says why")
        assert "it may use would hold 4" in next(iter(cluster.messages("huge")))
        assert cluster.bound("huge") == []

    on(1, 4, tmp_path, test)


def test_plain_pods_are_scheduled_one_by_one(tmp_path: Path) -> None:
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"plain-{i}"}, "spec": pod_spec(gpus=1)}
        for i in range(5)
    ]

    async def test(cluster: Live) -> None:
        cluster.apply(*pods)
        await cluster.until(lambda: cluster.running() == 4, "as many as fit")
        await cluster.until(lambda: len(cluster.messages()) == 1, "the fifth says why it waits")

    on(2, 2, tmp_path, test)


def test_a_node_that_comes_later_lets_a_hopeless_gang_start(tmp_path: Path) -> None:
    async def test(cluster: Live) -> None:
        cluster.apply(indexed("train", 6))
        await cluster.until(lambda: bool(cluster.messages()), "it says why it waits")
        node = cluster.whole.api.access.get("nodes", None, "node-0")
        larger = {"status": {"allocatable": {**node["status"]["allocatable"], "nvidia.com/gpu": "8"}}}
        cluster.whole.api.access.patch("nodes", None, "node-0", larger, subresource="status")
        await cluster.until(lambda: cluster.running() == 6, "it runs")

    on(1, 4, tmp_path, test)
