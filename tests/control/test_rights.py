"""deploy/rbac.yaml is what the scheduler needs: with these rights and no others it binds, reports and leads."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from muster.control.serve import Settings, serve
from muster.kube import config
from muster.local.embedded import Embedded
from tests.control.live import BOTH, LEVELS, Live, indexed, job, on, pod_group

FILE = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
RESOURCES = {
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "rbac.authorization.k8s.io/clusterroles",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/clusterrolebindings",
}


def test_the_rights_we_ask_for_are_enough(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "muster")

    async def test(cluster: Live) -> None:
        kubeconfig = tmp_path / "restricted"
        kubeconfig.write_text(cluster.whole.api.kubeconfig(account(cluster.whole.api)))
        task = asyncio.create_task(serve(config.load(kubeconfig), Settings(BOTH, LEVELS)))
        cluster.apply(pod_group("train", 3), job("train", 3, labels={"pod-group.scheduling.sigs.k8s.io": "train"}))
        await cluster.until(lambda: cluster.running("train") == 3, "the gang runs")
        cluster.apply(indexed("other", 3))
        await cluster.until(lambda: bool(cluster.messages("other")), "the other says why it waits")

        def counted() -> bool:
            return bool(cluster.get("PodGroup", "train").get("status", {}).get("running") == 3)

        await cluster.until(counted, "the group counts its members")
        events = cluster.whole.api.access
        await cluster.until(lambda: bool(events.list("events", "default")), "events are written")
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    on(1, 4, tmp_path, test, schedulers=0)
    assert [record.getMessage() for record in caplog.records if "orbidden" in record.getMessage()] == []


def account(api: Embedded) -> str:
    """A token of the account that the file makes."""
    made = {}
    for tree in yaml.safe_load_all(FILE.read_text()):
        if tree["kind"] != "Lease":  # the local cluster has it already
            made[tree["kind"]] = api.access.create(RESOURCES[tree["kind"]], tree, tree["metadata"].get("namespace"))
    return api.authenticator.issue("kube-system", "muster", made["ServiceAccount"]["metadata"]["uid"], 600)
