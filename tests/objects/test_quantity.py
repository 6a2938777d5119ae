"""Quantities: the documented forms, the rounding, and laws that must hold for every quantity."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.quantity import (
    MAX_INT64,
    Quantity,
    QuantityError,
    amount,
    format_amount,
    milli_units,
    parse_quantity,
)

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@pytest.mark.parametrize(
    ("text", "value", "milli", "canonical"),
    [
        ("0", 0, 0, "0"),
        ("1", 1, 1000, "1"),
        ("500m", 1, 500, "500m"),
        ("1.5", 2, 1500, "1500m"),
        ("0.001", 1, 1, "1m"),
        ("0.1m", 1, 1, "100u"),
        ("1n", 1, 1, "1n"),
        ("0.1n", 1, 1, "1n"),
        ("3.001n", 1, 1, "4n"),
        ("1k", 1000, 10**6, "1k"),
        ("1e3", 1000, 10**6, "1e3"),
        ("1E3", 1000, 10**6, "1e3"),
        ("1.3E+6", 1300000, 1300000000, "1300e3"),
        ("1E-3", 1, 1, "1e-3"),
        ("1E", 10**18, MAX_INT64, "1E"),
        ("12E6", 12 * 10**6, 12 * 10**9, "12e6"),
        ("0.5e0", 1, 500, "500e-3"),
        ("1Ki", 1024, 1024000, "1Ki"),
        ("1.5Gi", 1536 * 2**20, 1536 * 2**20 * 1000, "1536Mi"),
        ("1024Mi", 2**30, 2**30 * 1000, "1Gi"),
        ("1000Ki", 1024000, 1024000000, "1000Ki"),
        ("100.035Ki", 102436, 102435840, "102435840m"),
        ("0.5Ki", 512, 512000, "512"),
        ("0.000000000001Ki", 1, 1, "2n"),
        ("9Ei", MAX_INT64, MAX_INT64, str(MAX_INT64)),
        ("9223372036854775807Ki", MAX_INT64, MAX_INT64, str(MAX_INT64)),
        ("-9Ei", -MAX_INT64, -MAX_INT64, str(-MAX_INT64)),
        ("12E", MAX_INT64, MAX_INT64, "12E"),
        ("1000E", MAX_INT64, MAX_INT64, "1e21"),
        ("1e999999999", MAX_INT64, MAX_INT64, "1e999999999"),
        ("1e-999999999", 1, 1, "1e-9"),
        ("0e999999999", 0, 0, "0"),
        ("-1", -1, -1000, "-1"),
        ("+2Mi", 2 * 2**20, 2 * 2**20 * 1000, "2Mi"),
        ("-1.5", -2, -1500, "-1500m"),
        ("-0.1m", -1, -1, "-100u"),
        (".001", 1, 1, "1m"),
        ("1.", 1, 1000, "1"),
        ("1.G", 10**9, 10**12, "1G"),
        ("100.035k", 100035, 100035000, "100035"),
        (" 1Gi\n", 2**30, 2**30 * 1000, "1Gi"),
        ("1010", 1010, 1010000, "1010"),
        ("k", 0, 0, "0"),
    ],
)
def test_documented_forms(text: str, value: int, milli: int, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value(), quantity.milli(), str(quantity)) == (value, milli, canonical)


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "aoeu", "1.1.M", "1+1.0M", "0.1mi", "0.1am", ".5i", "1i", "-3.01i", "-3.01e-", "1e"),
        *("1Ki3", "1 Gi", "\u0661", "1_000", "0x10", "1e2147483648", "1e99999999999999999999", "1K", "1ki"),
        *("--1", "1\nG", "9" * 5000),
    ],
)
def test_malformed_text_is_named_in_one_line(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    message = str(caught.value)
    assert repr(text[:40]) in message or not text.strip()
    assert "\n" not in message


@pytest.mark.parametrize("raw", [True, None, [1], {"a": 1}])
def test_other_json_is_refused(raw: object) -> None:
    with pytest.raises(QuantityError, match="must be text or a number"):
        parse_quantity(raw)  # type: ignore[arg-type]


@pytest.mark.parametrize(("raw", "milli"), [(2, 2000), (0.5, 500), (1e-7, 1), (1e22, 10**25), (-3, -3000)])
def test_json_numbers_are_quantities_too(raw: float, milli: int) -> None:
    assert milli_units(raw) == milli


def test_amounts_are_milli_for_cpu_and_whole_for_the_rest() -> None:
    assert amount("cpu", milli_units("1500m")) == 1500
    assert amount("memory", milli_units("1500m")) == 2
    assert amount("nvidia.com/gpu", milli_units("8")) == 8
    assert amount("memory", milli_units("12E")) == MAX_INT64
    assert format_amount("cpu", 1500) == "1500m"
    assert format_amount("cpu", 2000) == "2"
    assert format_amount("memory", 3 * 2**30) == "3Gi"
    assert format_amount("hugepages-2Mi", 2**22) == "4Mi"
    assert format_amount("nvidia.com/gpu", 2048) == "2048"


digits = st.text("0123456789", max_size=12)
suffixes = st.sampled_from([*DECIMAL, *BINARY, *(f"{e}{n}" for e in "eE" for n in ("0", "3", "-3", "+7", "18"))])


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A quantity as text, with the exact number it stands for."""
    sign, whole, fraction, suffix = (
        draw(st.sampled_from(["", "+", "-"])),
        draw(digits),
        draw(digits),
        draw(suffixes),
    )
    number = Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    if suffix in BINARY:
        number *= 2 ** BINARY[suffix]
    else:
        number *= Fraction(10) ** (DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:]))
    point = "." if fraction or draw(st.booleans()) else ""
    return f"{sign}{whole}{point}{fraction}{suffix}" or "0", -number if sign == "-" else number


def rounded_up(number: Fraction) -> int:
    """Away from zero."""
    return -(-number).__floor__() if number >= 0 else number.__floor__()


@given(written())
def test_exact_to_nano_then_rounded_up(case: tuple[str, Fraction]) -> None:
    text, number = case
    quantity = parse_quantity(text)
    expected = Fraction(rounded_up(number * 10**9), 10**9)
    if quantity.format == "binary":
        expected = max(min(expected, Fraction(MAX_INT64)), Fraction(-MAX_INT64))
    assert quantity.number * Fraction(10) ** quantity.exponent == expected
    assert quantity.value() == max(-MAX_INT64, min(MAX_INT64, rounded_up(expected)))
    assert quantity.milli() == max(-MAX_INT64, min(MAX_INT64, rounded_up(expected * 1000)))


@given(written())
def test_canonical_text_loses_nothing_and_is_stable(case: tuple[str, Fraction]) -> None:
    quantity = parse_quantity(case[0])
    text = str(quantity)
    again = parse_quantity(text)
    assert _number(again) == _number(quantity)
    assert str(again) == text
    assert "." not in text


@given(written(), written())
def test_larger_stays_larger(left: tuple[str, Fraction], right: tuple[str, Fraction]) -> None:
    if left[1] <= right[1]:
        assert parse_quantity(left[0]).milli() <= parse_quantity(right[0]).milli()


@given(st.integers(0, 2**53), st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "hugepages-1Gi"]))
def test_amounts_round_trip(value: int, resource: str) -> None:
    assert amount(resource, milli_units(format_amount(resource, value))) == value


@given(st.text(max_size=12))
def test_any_text_parses_or_is_refused_cleanly(text: str) -> None:
    try:
        parse_quantity(text).milli()
    except QuantityError as error:
        assert repr(text)[1:-1] in str(error) or not text.strip()


def _number(quantity: Quantity) -> Fraction:
    return quantity.number * Fraction(10) ** quantity.exponent
