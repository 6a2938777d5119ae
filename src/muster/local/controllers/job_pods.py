"""The pods a Job makes: its template, an owner, the tracking finalizer and, if Indexed, who of them it is."""

from __future__ import annotations

from muster.local.api.access import Object
from muster.local.controllers import fields as f
from muster.local.controllers.job_indexes import INDEX, INDEX_FAILURES
from muster.local.controllers.templates import pod_of

TRACKING = "batch.kubernetes.io/job-tracking"
_ENV = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
}
_LONGEST_PREFIX = 58


def tracked(pod: Object) -> bool:
    """Whether the Job has not finished counting this pod."""
    return TRACKING in (f.meta(pod).get("finalizers") or ())


def make_pod(job: Object, index: int | None = None, failures: int | None = None) -> Object:
    """A new pod of the Job; `failures` is how often its index failed, where the Job counts that per index."""
    pod = pod_of(job, _prefix(f.name(job), index))
    metadata = pod["metadata"]
    metadata["finalizers"] = list(dict.fromkeys([*(metadata.get("finalizers") or ()), TRACKING]))
    _label(metadata, job)
    if index is not None:
        metadata["labels"][INDEX] = str(index)
        metadata["annotations"] = {**(metadata.get("annotations") or {}), INDEX: str(index)}
        if failures is not None:
            metadata["annotations"][INDEX_FAILURES] = str(failures)
        pod["spec"] = _spec_of_index(pod["spec"], f.name(job), index)
    return pod


def _prefix(name: str, index: int | None) -> str:
    suffix = "-" if index is None else f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix


def _label(metadata: Object, job: Object) -> None:
    own = {"controller-uid": f.uid(job), "job-name": f.name(job)}
    own |= {f"batch.kubernetes.io/{key}": value for key, value in own.items()}
    metadata["labels"] = {**own, **(metadata.get("labels") or {})}


def _spec_of_index(spec: Object, job: str, index: int) -> Object:
    changed = {**spec, "hostname": f"{job}-{index}"}
    for kind in ("initContainers", "containers"):
        if kind in spec:
            changed[kind] = [_with_index(container) for container in spec[kind]]
    return changed


def _with_index(container: Object) -> Object:
    env = container.get("env") or []
    if any(variable["name"] == _ENV["name"] for variable in env):
        return container
    return {**container, "env": [*env, _ENV]}
