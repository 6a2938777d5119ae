"""What the server fills in where a user said nothing, per kind. Objects are changed in place."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]


def apply(resource_id: str, obj: Object) -> None:
    """Fill in the defaults of a kind; kinds without any are left alone."""
    default = _BY_RESOURCE.get(resource_id)
    if default is not None:
        default(obj)


def pod_spec(spec: Object) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in spec.get("containers") or ():
        _container(container)
    for container in spec.get("initContainers") or ():
        _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _container(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = container.get("image", "")
    if "imagePullPolicy" not in container and image:
        tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
        fixed = tag not in ("", "latest") or "@" in image
        container["imagePullPolicy"] = "IfNotPresent" if fixed else "Always"
    resources = container.setdefault("resources", {})
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for env in container.get("env") or ():
        reference = (env.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _probe(container[name])


def _probe(probe: Object) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(name, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _volume(volume: Object) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", 420)
    items = list((volume.get("downwardAPI") or {}).get("items") or ())
    for projected in (volume.get("projected") or {}).get("sources") or ():
        items += (projected.get("downwardAPI") or {}).get("items") or ()
    for item in items:
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _pod(obj: Object) -> None:
    spec = obj["spec"]
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)


def template(spec: Object) -> None:
    inner = spec.setdefault("template", {})
    inner.setdefault("metadata", {})
    pod_spec(inner.setdefault("spec", {}))


def _deployment(obj: Object) -> None:
    spec = obj["spec"]
    template(spec)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def _replica_set(obj: Object) -> None:
    template(obj["spec"])
    obj["spec"].setdefault("replicas", 1)


def _replication_controller(obj: Object) -> None:
    spec = obj["spec"]
    template(spec)
    spec.setdefault("replicas", 1)
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if not spec.get("selector") and labels:
        spec["selector"] = dict(labels)


def _stateful_set(obj: Object) -> None:
    spec = obj["spec"]
    template(spec)
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    update = spec.setdefault("updateStrategy", {})
    if update.setdefault("type", "RollingUpdate") == "RollingUpdate":
        update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")


def _daemon_set(obj: Object) -> None:
    spec = obj["spec"]
    template(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    update = spec.setdefault("updateStrategy", {})
    if update.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxSurge", 0)
        rolling.setdefault("maxUnavailable", 1)


def job_spec(spec: Object) -> None:
    template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    unlimited = "backoffLimitPerIndex" in spec
    spec.setdefault("backoffLimit", 2147483647 if unlimited else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def _job(obj: Object) -> None:
    job_spec(obj["spec"])


def _cron_job(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    inner = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    template(inner)


def _service(obj: Object) -> None:
    spec = obj["spec"]
    kind = spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _namespace(obj: Object) -> None:
    obj["spec"].setdefault("finalizers", ["kubernetes"])
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _node(obj: Object) -> None:
    status = obj.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    for key, value in (obj.pop("stringData", None) or {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()


def _volume_claim(obj: Object) -> None:
    obj["spec"].setdefault("volumeMode", "Filesystem")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _volume_persistent(obj: Object) -> None:
    obj["spec"].setdefault("volumeMode", "Filesystem")
    obj["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _limit_range(obj: Object) -> None:
    for item in obj["spec"].get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        item.update({k: v for k, v in (("default", limits), ("defaultRequest", requests)) if v})


def _storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)


def _role_binding(obj: Object) -> None:
    obj.setdefault("roleRef", {}).setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")
        elif "namespace" not in subject and "namespace" in obj["metadata"]:
            subject["namespace"] = obj["metadata"]["namespace"]


def _native_group(obj: Object) -> None:
    obj["spec"].setdefault("disruptionMode", {"single": {}})


def _autoscaler(obj: Object) -> None:
    obj["spec"].setdefault("minReplicas", 1)


def _definition(obj: Object) -> None:
    spec = obj["spec"]
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", kind + "List")
    spec.setdefault("conversion", {"strategy": "None"})


_BY_RESOURCE: dict[str, Callable[[Object], None]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "services": _service,
    "secrets": _secret,
    "persistentvolumes": _volume_persistent,
    "persistentvolumeclaims": _volume_claim,
    "limitranges": _limit_range,
    "replicationcontrollers": _replication_controller,
    "apps/deployments": _deployment,
    "apps/replicasets": _replica_set,
    "apps/statefulsets": _stateful_set,
    "apps/daemonsets": _daemon_set,
    "batch/jobs": _job,
    "batch/cronjobs": _cron_job,
    "autoscaling/horizontalpodautoscalers": _autoscaler,
    "storage.k8s.io/storageclasses": _storage_class,
    "scheduling.k8s.io/priorityclasses": _priority_class,
    "scheduling.k8s.io/podgroups": _native_group,
    "scheduling.k8s.io/compositepodgroups": _native_group,
    "rbac.authorization.k8s.io/rolebindings": _role_binding,
    "rbac.authorization.k8s.io/clusterrolebindings": _role_binding,
    "apiextensions.k8s.io/customresourcedefinitions": _definition,
}
