"""Messages survive the wire; elections never mix steps; replicas go to other domains."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.elastic.protocol import (
    Ack,
    Document,
    Member,
    Phase,
    Refused,
    Restore,
    Shard,
    Source,
    Status,
    Vote,
    accepts,
    decode,
    elect,
    encode,
    protected_by,
    shrink_order,
)


def members(*domains: str) -> tuple[Member, ...]:
    return tuple(Member(f"m{i}", f"h:{i}", d) for i, d in enumerate(domains))


MESSAGES = [
    Document("j", 2, 7, 3, Phase.COMMIT, members("a", "b"), restore=Restore(5, Source.SHARDS, (("m0", "h:0"),))),
    Status(members("a")[0], True, leaving=3.0),
    Ack(4, 1, Vote(9, True, (Shard(9, 3, 0, 2),))),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_messages_survive_the_wire(message: object) -> None:
    data = json.loads(json.dumps(encode(message)))
    assert decode(type(message), data | {"a newer field": 1}) == message


def test_malformed_messages_are_refused_by_name() -> None:
    with pytest.raises(Refused, match="malformed Ack"):
        decode(Ack, {"epoch": "four", "life": 0})
    with pytest.raises(Refused, match="malformed Document"):
        decode(Document, {"phase": "dancing"})


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_older_epochs_and_terms_are_not_followed(epoch: int, term: int, of_epoch: int, of_term: int) -> None:
    document = Document(epoch=of_epoch, term=of_term)
    assert accepts(epoch, term, document) == (of_epoch >= epoch and of_term >= term)


def test_the_newest_complete_step_wins() -> None:
    held = (Shard(4, 1, 0, 2), Shard(6, 1, 0, 2))
    votes = {"m0": Vote(None, False, held), "m1": Vote(None, False, (Shard(4, 1, 1, 2),))}
    found = elect(votes, {"m0": "h:0", "m1": "h:1"}, ("m0", "m1"))
    assert (found.step, found.source) == (4, Source.SHARDS)
    assert found.holders == (("m0", "h:0"), ("m1", "h:1"))


def test_parts_of_different_cuts_do_not_make_a_step() -> None:
    votes = {"m0": Vote(shards=(Shard(4, 1, 0, 2),)), "m1": Vote(shards=(Shard(4, 2, 1, 2),))}
    assert elect(votes, {"m0": "", "m1": ""}, ("m0", "m1")).source is Source.STORE


def test_living_models_are_preferred_and_the_one_ahead_wins() -> None:
    shards = (Shard(7, 1, 0, 1),)
    votes = {"m0": Vote(8, True, shards), "m1": Vote(7, True), "m2": Vote(9, False)}
    found = elect(votes, {"m0": "h:0", "m1": "h:1", "m2": "h:2"}, ("m0", "m1", "m2"))
    assert (found.step, found.source, found.live) == (8, Source.LIVE, ("m0",))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=7), st.integers(0, 3), st.data())
def test_replicas_are_elsewhere_if_there_is_an_elsewhere(
    domains: list[str], replicas: int, data: st.DataObject
) -> None:
    seats = members(*domains)
    index = data.draw(st.integers(0, len(seats) - 1))
    chosen = protected_by(seats, index, replicas)
    assert index not in chosen and len(set(chosen)) == len(chosen) == min(replicas, len(seats) - 1)
    others = {d for d in domains if d != domains[index]}
    if replicas and others:
        assert domains[chosen[0]] != domains[index]
    assert len({domains[c] for c in chosen} - {domains[index]}) == min(replicas, len(others), len(chosen))


def test_shrinking_spares_neighbours() -> None:
    assert shrink_order(members(*"abcd")) == ("m3", "m1", "m2", "m0")


def test_agents_and_the_scheduler_need_no_torch() -> None:
    """The protocol is standard library only, and an agent starts in a moment."""
    code = (
        "import sys, muster.elastic.protocol; known = {m.partition('.')[0] for m in sys.modules};"
        "assert known <= set(sys.stdlib_module_names) | {'muster', '__mp_main__', 'sitecustomize'} | STARTED, known;"
        "import muster.elastic.agent, muster.elastic.serving; assert 'torch' not in sys.modules"
    )
    started = "STARTED = set(m.partition('.')[0] for m in __import__('sys').modules);"
    subprocess.run([sys.executable, "-c", started + code], check=True)
