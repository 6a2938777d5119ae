"""What affinity terms and spread constraints are about."""

from typing import Any

from muster.objects.affinity import (
    PodAffinityTerm,
    PreferredNodeTerm,
    TopologySpreadConstraint,
    node_preference,
)
from muster.objects.decode import from_object

APP = {"matchLabels": {"app": "train"}}


def term(**written: Any) -> PodAffinityTerm:
    """A term over racks."""
    return from_object({"topologyKey": "rack", **written}, PodAffinityTerm)


def test_a_term_without_selector_is_about_no_pod_and_an_empty_one_about_all() -> None:
    assert not term().pods({}).matches({})
    assert term(labelSelector={}).pods({}).matches({"any": "thing"})


def test_match_label_keys_narrow_to_pods_like_this_one() -> None:
    same = term(labelSelector=APP, matchLabelKeys=["run", "absent"], mismatchLabelKeys=["tenant"])
    pods = same.pods({"run": "7", "tenant": "t1"})
    assert pods.matches({"app": "train", "run": "7", "tenant": "t2"})
    assert pods.matches({"app": "train", "run": "7"})
    assert not pods.matches({"app": "train", "run": "8", "tenant": "t2"})
    assert not pods.matches({"app": "train", "run": "7", "tenant": "t1"})


def test_namespaces() -> None:
    assert term().covers_namespace("own", {}, "own")
    assert not term().covers_namespace("other", {}, "own")
    assert not term(namespaces=["other"]).covers_namespace("own", {}, "own")
    assert term(namespaces=["other"]).covers_namespace("other", {}, "own")
    assert term(namespaceSelector={}).covers_namespace("any", {}, "own")
    teams = term(namespaces=["other"], namespaceSelector={"matchLabels": {"team": "a"}})
    assert teams.covers_namespace("any", {"team": "a"}, "own")
    assert teams.covers_namespace("other", {}, "own")
    assert not teams.covers_namespace("own", {}, "own")


def test_spread_defaults_and_own_labels() -> None:
    spread = from_object(
        {"topologyKey": "rack", "labelSelector": APP, "matchLabelKeys": ["run"]}, TopologySpreadConstraint
    )
    assert (spread.max_skew, spread.min_domains, spread.when_unsatisfiable) == (1, 1, "DoNotSchedule")
    assert (spread.node_affinity_policy, spread.node_taints_policy) == ("Honor", "Ignore")
    assert spread.pods({"run": "1"}).matches({"app": "train", "run": "1"})
    assert not spread.pods({"run": "1"}).matches({"app": "train", "run": "2"})


def test_node_preferences_add_up() -> None:
    def wish(key: str, weight: int) -> PreferredNodeTerm:
        expressions = [{"key": key, "operator": "Exists"}]
        return from_object({"weight": weight, "preference": {"matchExpressions": expressions}}, PreferredNodeTerm)

    wishes = [wish("a", 10), wish("b", 5), PreferredNodeTerm(weight=50)]
    assert node_preference(wishes, {"a": "", "b": ""}, "n") == 15
    assert node_preference(wishes, {"b": ""}, "n") == 5
    assert node_preference(wishes, {}, "n") == 0
