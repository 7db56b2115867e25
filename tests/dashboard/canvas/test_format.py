"""Numbers, durations and times in words."""

import pytest

pytestmark = pytest.mark.browser

T0 = "1795977000000000000"  # 2026-11-29 18:30:00 UTC

CASES = [
    ("count(0)", "0"),
    ("count(1234567)", "1,234,567"),
    ("number(0)", "0"),
    ("number(0.00123456)", "0.00123"),
    ("number(1.2345)", "1.23"),
    ("number(98.76)", "98.8"),
    ("number(1234.5)", "1,235"),
    ("number(null)", "unknown"),
    ("percent(0)", "0%"),
    ("percent(1)", "100%"),
    ("percent(0.111, '281 GPU-h')", "11.1% of 281 GPU-h"),
    ("percent(0.9999999)", ">99.9%"),
    ("percent(1e-7)", "<0.01%"),
    ("duration(0)", "0 s"),
    ("duration(850)", "850 ns"),
    ("duration(12345678)", "12.3 ms"),
    ("duration(999999999)", "1 s"),
    ("duration(59.96e9)", "1 m 00 s"),
    ("duration(184e9)", "3 m 04 s"),
    ("duration(3599.9e9)", "1 h 00 m"),
    ("duration(15840e9)", "4 h 24 m"),
    ("duration(-2e6)", "-2 ms"),
    ("seconds(1.5)", "1.5 s"),
    ("sinceStart(12345000000)", "12.345 s"),
    ("sinceStart(72345000000)", "1 m 12.345 s"),
    ("sinceStart(7392000000000, 1e9)", "2 h 03 m 12 s"),
    ("sinceStart(59999999999)", "1 m 00.000 s"),
    ("sinceStart(-1500000000)", "-1.500 s"),
    ("sinceStart(1234567, 1e3)", "0.001235 s"),
    (f"utc(5123456789, '{T0}')", "18:30:05.123 UTC"),
    (f"utc(5123456789, '{T0}', 1e3, true)", "2026-11-29 18:30:05.123456 UTC"),
    (f"local(5123456789, '{T0}', 1e9)", "00:00:05 +05:30"),
    (f"time(5e9, {{clockMode: 'utc', story: {{t0_ns: '{T0}'}}}}, 1e9)", "18:30:05 UTC"),
    ("time(5e9, {clockMode: 'utc', story: null}, 1e9)", "5 s"),
]


def test_words_for_numbers(plain):
    got = plain.evaluate(
        "(calls) => calls.map((c) => eval(`Cascade.format.${c}`))", [c[0] for c in CASES]
    )
    assert dict(zip([c[0] for c in CASES], got, strict=True)) == dict(CASES)


@pytest.mark.parametrize(
    ("ranks", "words"),
    [([], "{}"), ([2], "{2}"), ([3, 1, 2], "{1-3}"), ([0, 1, 5], "{0, 1, 5}"), ([4, 4], "{4}")],
)
def test_rank_sets(plain, ranks, words):
    assert plain.evaluate("(ranks) => Cascade.rankSet(ranks)", ranks) == words


@pytest.mark.parametrize(
    ("span_s", "labels"),
    [
        (14400, ["0", "30 m", "1 h 00 m"]),
        (100, ["0", "10 s", "20 s"]),
        (1, ["0", "100 ms", "200 ms"]),
    ],
)
def test_ticks_are_round_and_say_no_more_than_they_know(plain, span_s, labels):
    got = plain.evaluate(
        """(b) => {
          const { step, at } = Cascade.axis.ticks(0, b, 1200, 110);
          return at.slice(0, 3).map((t) => Cascade.axis.label(t, { clockMode: "start" }, step));
        }""",
        span_s * 1e9,
    )
    assert got == labels


def test_elements_take_text_never_markup(plain):
    html = plain.evaluate(
        """() => Cascade.el("p", { text: "<img src=x onerror=1>" }, "<b>", ["c", null]).innerHTML"""
    )
    assert html == "&lt;img src=x onerror=1&gt;&lt;b&gt;c"


@pytest.mark.parametrize("name", ["onclick", "style", "OnLoad"])
def test_elements_refuse_handlers_and_styles_as_attributes(plain, name):
    refused = plain.evaluate(
        """(name) => { try { Cascade.el("p", { attrs: { [name]: "x" } }); return false; } catch { return true; } }""",
        name,
    )
    assert refused
