"""Lengths of time and shares as people say them, the same on every page and in every table."""

_SCALES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 h`, `12 d`: in the largest unit that gives at least 1."""
    for length, word in _SCALES:
        if seconds >= length:
            return f"{_short(seconds / length)} {word}"
    return f"{_short(seconds)} s"


def percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def count(number: float) -> str:
    return f"{number:,.0f}"


def ratio(number: float) -> str:
    return f"{number:,.2f}" if number < 100 else f"{number:,.0f}"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:,.0f}"
