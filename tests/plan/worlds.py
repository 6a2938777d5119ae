"""Small random worlds of nodes, labels, taints and rules."""

from hypothesis import strategies as st

from muster.model.node import Node
from muster.model.rules import (
    HostPort,
    NodeTerm,
    PodSelector,
    PodTerm,
    PreferredNodes,
    Requirement,
    Rules,
    Spread,
    Taint,
    Toleration,
)

KEYS = ("zone", "rack", "gpus")
values = st.sampled_from(["a", "b", "4", "8", "-1"])
taints = st.builds(
    Taint,
    st.sampled_from(["t", "u", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["", "1", "5"]),
    st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", "t", "u", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["Equal", "Exists", "Lt", "Gt"]),
    st.sampled_from(["", "1", "3", "03"]),
    st.sampled_from(["", "NoSchedule", "PreferNoSchedule", "NoExecute"]),
)
requirements = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, max_size=2, unique=True).map(tuple),
    ),
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["Exists", "DoesNotExist"]),
        st.sampled_from([(), ("a",)]),
    ),
    st.builds(
        Requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from([("4",), ("5",), ("-2",), ("x",), (), ("1", "9")]),
    ),
)
fields = st.builds(
    Requirement,
    st.sampled_from(["metadata.name", "metadata.uid"]),
    st.sampled_from(["In", "NotIn", "Exists"]),
    st.sampled_from([("n0",), ("n1",), ("n0", "n1"), ()]),
)
node_terms = st.builds(NodeTerm, st.lists(requirements, max_size=2).map(tuple), st.lists(fields, max_size=1).map(tuple))
static_rules = st.builds(
    Rules,
    node_selector=st.lists(st.tuples(st.sampled_from(KEYS), values), max_size=1).map(tuple),
    nodes_any=st.lists(node_terms, max_size=2).map(tuple),
    nodes_preferred=st.lists(st.builds(PreferredNodes, st.integers(1, 100), node_terms), max_size=2).map(tuple),
    tolerations=st.lists(tolerations, max_size=2).map(tuple),
    volumes=st.lists(st.lists(node_terms, max_size=2).map(tuple), max_size=1).map(tuple),
)


@st.composite
def nodes(draw: st.DrawFn, most: int = 6, marked: bool = True, keys: tuple[str, ...] = KEYS) -> list[Node]:
    """Nodes that carry their own host name and some of the other labels."""
    found = []
    for number in range(draw(st.integers(1, most))):
        labels = draw(st.dictionaries(st.sampled_from(keys), values if marked else st.sampled_from("ab")))
        labels["host"] = f"n{number}"
        marks = tuple(draw(st.lists(taints, max_size=2))) if marked else ()
        up = [draw(st.sampled_from([True, True, True, False])) for _ in range(2)] if marked else [True, True]
        found.append(Node(f"n{number}", {"pods": 9}, labels, marks, up[0], up[1]))
    return found


pod_labels = st.dictionaries(st.sampled_from(["app", "job"]), st.sampled_from(["x", "y"]), max_size=2)
pod_requirements = st.builds(
    Requirement,
    st.sampled_from(["app", "job"]),
    st.just("In"),
    st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2, unique=True).map(tuple),
) | st.builds(Requirement, st.sampled_from(["app", "job"]), st.sampled_from(["Exists", "DoesNotExist"]), st.just(()))
pod_selectors = st.builds(
    PodSelector,
    st.lists(pod_requirements, max_size=1).map(tuple),
    st.sampled_from([(), (), ("team",), ("team", "other")]),
)
pod_terms = st.builds(PodTerm, pod_selectors, st.sampled_from(["host", "zone", "rack"]))
host_ports = st.builds(
    HostPort, st.sampled_from([80, 81]), st.just("TCP"), st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"])
)
spreads = st.builds(
    Spread,
    st.sampled_from(["host", "zone", "rack"]),
    st.integers(1, 2),
    pod_selectors,
    required=st.sampled_from([True, True, True, False]),
    min_domains=st.integers(1, 3),
    honour_affinity=st.booleans(),
    honour_taints=st.booleans(),
)
selector_rules = st.builds(
    Rules,
    node_selector=st.lists(st.tuples(st.sampled_from(["zone", "rack"]), st.sampled_from("ab")), max_size=1).map(tuple),
)


def tuples(strategy: st.SearchStrategy[object], most: int) -> st.SearchStrategy[tuple[object, ...]]:
    """Up to `most` of these."""
    return st.lists(strategy, max_size=most).map(tuple)


pod_rules = st.builds(
    Rules,
    near=tuples(pod_terms, 2),
    away=tuples(pod_terms, 2),
    host_ports=tuples(host_ports, 1),
    spread=tuples(spreads, 2),
    node_selector=st.sampled_from([(), (), (("zone", "a"),)]),
)
