"""The pages as a browser would parse them: well formed, self-contained, and true to the run."""

import re
from html.parser import HTMLParser

import pytest

from muster.sim.metrics import measure
from muster.sim.outcome import History
from muster.sim.report import gantt
from muster.sim.report.compare import best, columns, compare_page
from muster.sim.report.page import run_page
from muster.sim.slots import assign
from muster.sim.workload import Workload
from tests.sim.fake import first_come, job, machine

VOID = {"meta"}


class Page(HTMLParser):
    """Counts elements, checks nesting, and keeps the words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def count(self, tag: str, kind: str) -> int:
        return sum(name == tag and (attrs.get("class") or "").split()[:1] == [kind] for name, attrs in self.found)


def history(jobs: int, procs: int = 8) -> History:
    rows = (job(f"<{i}>", i * 7, 20 + i % 50, 1 + i % 8) for i in range(jobs))
    return first_come(Workload("day & night", tuple(rows)), procs)


def page(run: History, procs: int = 8) -> tuple[str, Page]:
    text = run_page(run, assign(run, machine(procs)), machine(procs))
    return text, Page(text)


def test_a_page_needs_nothing_from_outside() -> None:
    text, parsed = page(history(50))
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img", text)
    assert "prefers-color-scheme: dark" in text
    assert parsed.found[0] == ("html", {"lang": "en"})


def test_every_job_is_a_box_with_its_figures_and_names_are_escaped() -> None:
    run = history(50)
    run.outcomes[3].backfilled = True
    _, parsed = page(run)
    titles = {words for words in parsed.words if "wide, waited" in words}
    assert len(titles) == 50
    assert parsed.count("rect", "back") == len(assign(run, machine(8)).held[3])
    assert [words for words in titles if words.endswith("backfilled")] == [
        words for words in titles if words.startswith("<3>: 4 wide, waited")
    ]
    assert "day & night under fcfs" in parsed.words


def test_many_jobs_become_a_map_that_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt, "MOST_BOXES", 100)
    text, parsed = page(history(1000))
    assert parsed.count("rect", "job") == 0
    assert 1 <= parsed.count("path", "heat") <= 8
    assert len(text) < 300_000


def test_the_map_holds_as_much_as_the_jobs_did() -> None:
    run = first_come(Workload("w", (job("a", 0, 50, 4), job("b", 0, 100, 2))), 8)
    slots = assign(run, machine(8))
    text = gantt._map(gantt._frame(slots, (0.0, 100.0)), run, slots, (0.0, 100.0))
    (kind,) = re.findall(r'class="heat (s\d)"', text)
    assert kind == "s8"  # every touched cell is wholly held
    wide, high = 976.0, 180.0  # of the drawing area
    area = sum(float(w) * float(h) for w, h in re.findall(r"h([\d.]+)v([\d.]+)", text))
    assert area == pytest.approx(wide * high * (4 * 50 + 2 * 100) / 800, rel=0.01)


def test_what_never_started_is_listed_with_the_reason() -> None:
    _, parsed = page(history(8, procs=6), 6)
    assert "needs 7 CPUs; the cluster has 6" in parsed.words
    assert "jobs never started" in parsed.words


def test_a_run_in_which_nothing_started_has_a_page() -> None:
    page(first_come(Workload("w", (job("a", 0, 1, 99),)), 8))


def test_the_comparison_has_a_row_and_a_curve_per_policy() -> None:
    runs = [history(50), history(50, 16)]
    runs[1].policy = "easy:wfp3"
    text = compare_page(runs, machine(8))
    parsed = Page(text)
    assert parsed.count("path", "curve") == 2
    assert parsed.words.count("easy:wfp3") >= 2
    assert sum(tag == "tr" for tag, _ in parsed.found) == 3


def test_the_best_is_marked_unless_all_are_the_same_or_jobs_were_left_out() -> None:
    slow, fast, partial = (measure(history(50, procs)) for procs in (8, 16, 7))
    shown = {column.name: column for column in columns([slow, fast, partial])}
    assert best(shown["mean wait"], [slow, fast]) == {1}
    assert best(shown["mean wait"], [slow, slow]) == set()
    assert best(shown["in use"], [partial, slow]) == {1}
    assert best(shown["never ran"], [slow, partial]) == {0}
    assert "missed" not in shown
