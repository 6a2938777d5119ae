"""What a pod asks for, counted as Kubernetes counts it.

Containers run together, so they add up; ordinary init containers run one at a time before them, so the
largest counts; a sidecar starts among the init containers and stays, so it adds to everything after it.
Pod-level resources replace the sum for the resources they name, overhead comes on top. While a resize is
under way the largest of asked-for, allocated and actual counts. Requests left out default to limits, as the
API server fills them in: owners' templates have not been through it.

Claims of dynamic resource allocation are not counted here: they are not amounts.
"""

from collections.abc import Iterable, Mapping

from muster.objects.decode import ObjectError
from muster.objects.pods import Container, ContainerStatus, Pod, ResourceRequirements
from muster.objects.quantity import QuantityError, Raw, amount, milli_units

Amounts = dict[str, int]


def pod_requests(pod: Pod) -> Amounts:
    """Amounts by resource: cpu in thousandths of a core, all else in base units; zeros are left out."""
    try:
        total = _pod_milli(pod)
    except QuantityError as error:
        raise ObjectError(f"pod {pod.metadata.namespace}/{pod.metadata.name}: {error}") from error
    return {name: amount(name, milli) for name, milli in total.items() if milli}


def pod_footprint(pod: Pod) -> Amounts:
    """What the pod takes from a node's allocatable: its requests, and one of the node's pod slots."""
    return {**pod_requests(pod), "pods": 1}


def _pod_milli(pod: Pod) -> Amounts:
    asked = _containers_milli(pod, [_spec_requests(each) for each in _all_containers(pod)])
    total = asked
    if _has_status_resources(pod):
        stages = [] if _is_resize_infeasible(pod) else [asked]
        total = _largest(*stages, *_reported(pod))
    total = {**total, **_pod_level(pod, asked)}
    return _sum(total, _milli(pod.spec.overhead))


def _all_containers(pod: Pod) -> list[Container]:
    return [*pod.spec.containers, *pod.spec.init_containers]


def _containers_milli(pod: Pod, requests: list[Amounts]) -> Amounts:
    """Aggregate the requests of all containers, given in the order of `_all_containers`."""
    count = len(pod.spec.containers)
    running: Amounts = _sum(*requests[:count])
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container, asked in zip(pod.spec.init_containers, requests[count:], strict=True):
        during = _sum(sidecars, asked)
        if container.is_sidecar:
            running, sidecars = _sum(running, asked), during
        peak = _largest(peak, during)
    return _largest(running, peak)


def _spec_requests(container: Container) -> Amounts:
    written = container.resources
    missing = {name: raw for name, raw in written.limits.items() if name not in written.requests}
    return _milli({**written.requests, **missing} if missing else written.requests)


def _pod_level(pod: Pod, containers: Amounts) -> Amounts:
    """The pod-level requests that replace the sum over containers."""
    written = pod.spec.resources
    if written is None:
        return {}
    level = _supported(written.requests)
    for name, limit in _supported(written.limits).items():
        # Hugepages cannot be overcommitted: their request is the limit whatever the containers say.
        fallback = limit if name.startswith("hugepages-") else containers.get(name, limit)
        level.setdefault(name, fallback)
    if not level or pod.status.resources is None:
        return level
    stages = [] if _is_resize_infeasible(pod) else [level]
    stages += [_milli(pod.status.resources.requests), _milli(pod.status.allocated_resources or {})]
    return {name: most for name, most in _largest(*stages).items() if _is_pod_level(name)}


def _supported(written: Mapping[str, Raw]) -> Amounts:
    return {name: each for name, each in _milli(written).items() if _is_pod_level(name)}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _has_status_resources(pod: Pod) -> bool:
    status = pod.status
    return status.resources is not None or any(
        each.allocated_resources is not None or each.resources is not None
        for each in (*status.container_statuses, *status.init_container_statuses)
    )


def _reported(pod: Pod) -> tuple[Amounts, Amounts]:
    """What the node agent allocated, and what it made true; whole-pod figures win over the containers'."""
    whole, allocated = pod.status.resources, pod.status.allocated_resources
    if whole is not None and whole.requests and allocated is not None:
        return _milli(allocated), _milli(whole.requests)
    statuses = {each.name: each for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    keep_spec = not _is_resize_infeasible(pod)
    pairs = [(each, statuses.get(each.name)) for each in _all_containers(pod)]
    return (
        _containers_milli(pod, [_allocated(each, status, keep_spec) for each, status in pairs]),
        _containers_milli(pod, [_actual(each, status, keep_spec) for each, status in pairs]),
    )


def _allocated(container: Container, status: ContainerStatus | None, keep_spec: bool) -> Amounts:
    if status is not None and status.allocated_resources is not None:
        return _milli(status.allocated_resources)
    return _spec_requests(container) if keep_spec else {}


def _actual(container: Container, status: ContainerStatus | None, keep_spec: bool) -> Amounts:
    actual: ResourceRequirements | None = status.resources if status is not None else None
    if actual is not None and actual.requests:
        return _milli(actual.requests)
    return _allocated(container, status, keep_spec)


def _is_resize_infeasible(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _milli(written: Mapping[str, Raw]) -> Amounts:
    found = {}
    for name, raw in written.items():
        found[name] = milli_units(raw)
        if found[name] < 0:
            raise QuantityError(f"{name} '{raw}': a request cannot be negative")
    return found


def _sum(*amounts: Amounts) -> Amounts:
    total: Amounts = {}
    for name, each in _items(amounts):
        total[name] = total.get(name, 0) + each
    return total


def _largest(*amounts: Amounts) -> Amounts:
    most: Amounts = {}
    for name, each in _items(amounts):
        most[name] = max(most.get(name, 0), each)
    return most


def _items(amounts: Iterable[Amounts]) -> Iterable[tuple[str, int]]:
    return (item for each in amounts for item in each.items())
