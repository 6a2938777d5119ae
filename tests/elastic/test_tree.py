"""Sums that do not depend on how many members there are."""

import operator
import random

from hypothesis import given
from hypothesis import strategies as st

from muster.elastic.layout import even
from muster.elastic.tree import Summing, combined, nodes


@given(st.integers(1, 24), st.integers(1, 30), st.integers(0, 2**30))
def test_the_sum_has_the_same_bits_for_every_world(leaves: int, world: int, seed: int) -> None:
    values = [random.Random(seed + i).uniform(-1e9, 1e-9) for i in range(leaves)]
    known: dict[tuple[int, int], float] = {}
    for rank in range(world):
        first, count = even(leaves, world, rank)
        mine = Summing(leaves, first, first + count, operator.add)
        for value in values[first : first + count]:
            mine.leaf(value)
        assert [span for span, _ in mine.done] == nodes(leaves, first, first + count)
        known.update(mine.done)
    alone = {(i, i + 1): v for i, v in enumerate(values)}
    assert combined(leaves, known, operator.add) == combined(leaves, alone, operator.add)


def test_a_member_holds_few_partial_sums() -> None:
    mine = Summing(1024, 0, 1023, operator.add)
    for _ in range(1023):
        mine.leaf(1.0)
        assert len(mine.done) <= 10
