"""The table of built-in kinds."""

from __future__ import annotations

from dataclasses import replace

from muster.local.api.resources import Catalogue, Resource

# group/version: plural Kind scope short-names subresources categories ("-" for none)
_TABLE = """
v1 bindings Binding namespaced - - create
v1 configmaps ConfigMap namespaced cm - -
v1 endpoints Endpoints namespaced ep - -
v1 events Event namespaced ev - -
v1 limitranges LimitRange namespaced limits - -
v1 namespaces Namespace cluster ns status,finalize -
v1 nodes Node cluster no status -
v1 persistentvolumeclaims PersistentVolumeClaim namespaced pvc status -
v1 persistentvolumes PersistentVolume cluster pv status -
v1 pods Pod namespaced po \
status,binding,eviction,log,exec,ephemeralcontainers,resize all
v1 podtemplates PodTemplate namespaced - - -
v1 replicationcontrollers ReplicationController namespaced rc status,scale all
v1 resourcequotas ResourceQuota namespaced quota status -
v1 secrets Secret namespaced - - -
v1 serviceaccounts ServiceAccount namespaced sa token -
v1 services Service namespaced svc status all
apps/v1 controllerrevisions ControllerRevision namespaced - - -
apps/v1 daemonsets DaemonSet namespaced ds status all
apps/v1 deployments Deployment namespaced deploy status,scale all
apps/v1 replicasets ReplicaSet namespaced rs status,scale all
apps/v1 statefulsets StatefulSet namespaced sts status,scale all
batch/v1 cronjobs CronJob namespaced cj status all
batch/v1 jobs Job namespaced - status all
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler namespaced hpa status all
policy/v1 poddisruptionbudgets PodDisruptionBudget namespaced pdb status -
scheduling.k8s.io/v1 priorityclasses PriorityClass cluster pc - -
coordination.k8s.io/v1 leases Lease namespaced - - -
events.k8s.io/v1 events Event namespaced ev - -
discovery.k8s.io/v1 endpointslices EndpointSlice namespaced - - -
networking.k8s.io/v1 networkpolicies NetworkPolicy namespaced netpol - -
networking.k8s.io/v1 ingresses Ingress namespaced ing status -
networking.k8s.io/v1 ingressclasses IngressClass cluster - - -
node.k8s.io/v1 runtimeclasses RuntimeClass cluster - - -
storage.k8s.io/v1 storageclasses StorageClass cluster sc - -
storage.k8s.io/v1 csinodes CSINode cluster - - -
storage.k8s.io/v1 csidrivers CSIDriver cluster - - -
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity namespaced - - -
storage.k8s.io/v1 volumeattachments VolumeAttachment cluster - status -
rbac.authorization.k8s.io/v1 roles Role namespaced - - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding namespaced - - -
rbac.authorization.k8s.io/v1 clusterroles ClusterRole cluster - - -
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding cluster - - -
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition cluster crd,crds status -
authentication.k8s.io/v1 tokenreviews TokenReview cluster - - create
authentication.k8s.io/v1 selfsubjectreviews SelfSubjectReview cluster - - create
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview cluster - - create
authorization.k8s.io/v1 selfsubjectrulesreviews SelfSubjectRulesReview cluster - - create
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview cluster - - create
authorization.k8s.io/v1 localsubjectaccessreviews LocalSubjectAccessReview namespaced - - create
"""
_NATIVE_GANG = """
scheduling.k8s.io/v1beta1 podgroups PodGroup namespaced - status -
scheduling.k8s.io/v1beta1 workloads Workload namespaced - - -
scheduling.k8s.io/v1alpha3 compositepodgroups CompositePodGroup namespaced - status -
"""


def catalogue(native_gang: bool = False) -> Catalogue:
    """The built-in kinds; the native gang kinds only on demand, as in Kubernetes."""
    kinds = Catalogue()
    for line in _TABLE.strip().splitlines():
        kinds.add(_resource(line))
    if native_gang:
        for line in _NATIVE_GANG.strip().splitlines():
            resource = _resource(line)
            kinds.add(resource)
            if resource.version == "v1beta1":
                kinds.add(resource.at("v1alpha3"))
    return kinds


def _resource(line: str) -> Resource:
    api_version, plural, kind, scope, short, subresources, category = line.split()
    group, _, version = api_version.rpartition("/")
    only_create = category == "create"
    resource = Resource(
        group,
        version,
        plural,
        kind,
        scope == "namespaced",
        _names(short),
        _names(subresources),
        () if only_create else _names(category),
        singular=kind.lower(),
    )
    return _only_create(resource) if only_create else resource


def _only_create(resource: Resource) -> Resource:
    return replace(resource, verbs=("create",))


def _names(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))
