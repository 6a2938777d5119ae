"""How many slots are free over time, as a step function: `free[i]` from `times[i]` until `times[i + 1]`.

Plain lists: a profile has a few dozen steps, where bisecting a list beats any array.
"""

from bisect import bisect_left, bisect_right

NEVER = float("inf")


class Profile:
    __slots__ = ("free", "times")

    def __init__(self, now: float, free: int) -> None:
        self.times: list[float] = [now]
        self.free: list[int] = [free]

    def forget_before(self, now: float) -> None:
        """Drop the past. Asking about times before `now` is no longer possible."""
        times = self.times
        past = bisect_right(times, now) - 1
        if past > 0:
            del times[:past], self.free[:past]
        times[0] = now

    def add(self, begin: float, end: float, slots: int) -> None:
        """`slots` more (or fewer) free from begin to end."""
        times, free = self.times, self.free
        if begin < times[0]:
            begin = times[0]
        if end <= begin:
            return
        first = bisect_left(times, begin)
        if first == len(times) or times[first] != begin:
            times.insert(first, begin)
            free.insert(first, free[first - 1])
        if end == NEVER:
            last = len(times)
        else:
            last = bisect_left(times, end, first)
            if last == len(times) or times[last] != end:
                times.insert(last, end)
                free.insert(last, free[last - 1])
        for i in range(first, last):
            free[i] += slots

    def at(self, time: float) -> int:
        return self.free[max(bisect_right(self.times, time) - 1, 0)]

    def least(self, begin: float, end: float) -> int:
        """The fewest free slots at any moment of the interval."""
        first = max(bisect_right(self.times, begin) - 1, 0)
        last = bisect_left(self.times, end, first)
        return min(self.free[first : max(last, first + 1)])

    def earliest(self, slots: int, length: float, before: float = NEVER) -> float | None:
        """The first start from which `slots` stay free for `length`, at the latest until `before`.

        With `before`, what lies after it counts as free (a gang's own promise does), and a start there is no find.
        """
        times, free = self.times, self.free
        steps = len(times)
        start: float | None = None
        for i in range(steps):
            time = times[i]
            if time >= before or (start is not None and time >= start + length):
                return start
            if free[i] < slots:
                start = None
            elif start is None:
                start = time
        return start
