"""Free slots over time, against a list with one number per second."""

from hypothesis import given
from hypothesis import strategies as st

from muster.plan.profile import NEVER, Profile

HORIZON = 40
SPANS = st.lists(
    st.tuples(st.integers(-5, 30), st.one_of(st.integers(-5, 35), st.just(NEVER)), st.integers(-5, 5)), max_size=10
)


def build(free: int, spans: list[tuple[int, float, int]]) -> tuple[Profile, list[int]]:
    """The last second of the list stands for ever after."""
    profile, seconds = Profile(0, free), [free] * HORIZON
    for begin, end, slots in spans:
        profile.add(begin, end, slots)
        for second in range(max(begin, 0), HORIZON):
            if second < end:
                seconds[second] += slots
    return profile, seconds


def stays(seconds: list[int], slots: int, begin: int, end: float) -> bool:
    return all(free >= slots for second, free in enumerate(seconds) if begin <= second < end)


@given(st.integers(0, 10), SPANS, st.integers(0, 45))
def test_at_any_moment(free: int, spans: list[tuple[int, float, int]], time: int) -> None:
    profile, seconds = build(free, spans)
    assert profile.at(time) == seconds[min(time, HORIZON - 1)]


@given(st.integers(0, 10), SPANS, st.integers(0, 35), st.integers(1, 50))
def test_the_least_of_an_interval(free: int, spans: list[tuple[int, float, int]], begin: int, length: int) -> None:
    profile, seconds = build(free, spans)
    assert profile.least(begin, begin + length) == min(seconds[begin : begin + length])


@given(st.integers(0, 10), SPANS, st.integers(1, 8), st.one_of(st.integers(1, 20), st.just(NEVER)))
def test_the_earliest_start_is_the_first_second_from_which_it_fits(
    free: int, spans: list[tuple[int, float, int]], slots: int, length: float
) -> None:
    profile, seconds = build(free, spans)
    fitting = [second for second in range(HORIZON) if stays(seconds, slots, second, second + length)]
    assert profile.earliest(slots, length) == (fitting[0] if fitting else None)


@given(st.integers(0, 10), SPANS, st.integers(1, 8), st.integers(1, 20), st.integers(1, 35))
def test_before_a_promise_what_lies_after_it_is_ones_own(
    free: int, spans: list[tuple[int, float, int]], slots: int, length: int, before: int
) -> None:
    profile, seconds = build(free, spans)
    fitting = [s for s in range(before) if stays(seconds, slots, s, min(s + length, before))]
    assert profile.earliest(slots, length, before) == (fitting[0] if fitting else None)


@given(st.integers(0, 10), SPANS, st.integers(0, 30))
def test_forgetting_the_past_changes_no_future(free: int, spans: list[tuple[int, float, int]], now: int) -> None:
    profile, seconds = build(free, spans)
    profile.forget_before(now)
    assert profile.times[0] == now
    assert [profile.at(second) for second in range(now, HORIZON)] == seconds[now:]


@given(SPANS)
def test_what_is_added_and_taken_back_is_as_if_it_never_was(spans: list[tuple[int, float, int]]) -> None:
    profile, _ = build(3, spans)
    for begin, end, slots in spans:
        profile.add(begin, end, -slots)
    assert set(profile.free) == {3}
    assert profile.times == sorted(set(profile.times))
