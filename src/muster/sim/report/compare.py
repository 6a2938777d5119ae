"""Policies side by side on one workload: one table, one plot of waits, and how full each kept the cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.model.node import Node
from muster.sim.metrics import Metrics, measure, waits
from muster.sim.outcome import History
from muster.sim.report import charts
from muster.sim.report.page import cell, document, key, machine, section, table
from muster.sim.series import Series, series, span
from muster.sim.words import count, duration, percent, ratio

_STEPS = 360


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of the table: how it is called, found and written, and which way is better (0: neither)."""

    name: str
    value: Callable[[Metrics], float]
    write: Callable[[float], str]
    better: int = -1


COLUMNS: tuple[Column, ...] = (
    Column("mean wait", lambda m: m.wait.mean, duration),
    Column("median", lambda m: m.wait.median, duration),
    Column("p95", lambda m: m.wait.p95, duration),
    Column("p99", lambda m: m.wait.p99, duration),
    Column("max", lambda m: m.wait.max, duration),
    Column("slowdown", lambda m: m.slowdown.mean, ratio),
    Column("in use", lambda m: m.utilisation, percent, 1),
    Column("goodput", lambda m: m.goodput, percent, 1),
    Column("makespan", lambda m: m.makespan, duration),
    Column("missed", lambda m: m.missed_deadlines, count),
    Column("never ran", lambda m: m.never_started, count),
)


def columns(figures: Sequence[Metrics]) -> list[Column]:
    """The columns worth showing: those about failures only where there were any."""
    rare = {"missed": lambda m: m.deadlines, "never ran": lambda m: m.never_started}
    return [c for c in COLUMNS if c.name not in rare or any(rare[c.name](m) for m in figures)]


def best(column: Column, figures: Sequence[Metrics]) -> set[int]:
    """Which rows are best, by what is written; none where all are the same or jobs were left out."""
    written = [column.write(column.value(each)) for each in figures]
    if not column.better or len(set(written)) == 1:
        return set()
    fewest = min(each.never_started for each in figures)
    fair = [i for i, each in enumerate(figures) if each.never_started == fewest]
    top = max(fair, key=lambda i: column.better * column.value(figures[i]))
    return {i for i in fair if written[i] == written[top]}


def compare_page(histories: Sequence[History], nodes: Sequence[Node]) -> str:
    first = histories[0]
    between = span(histories)
    data = [series(history, _STEPS, between) for history in histories]
    top = max(float(each.waiting.max()) for each in data)
    panels = [
        section(history.policy, "in use, and jobs waiting", *_panel(each, top))
        for history, each in zip(histories, data, strict=True)
    ]
    under = f"{count(len(first.outcomes))} jobs on {machine(first, nodes)}"
    return document(
        f"{first.workload.name}: {len(histories)} policies",
        under,
        section("Figures", "best in green; missed: deadlines", _table(histories)),
        section("Waits", "share of jobs that had started after so long a wait", *_curves(histories)),
        f'<div class="pair">{"".join(panels)}</div>',
    )


def _table(histories: Sequence[History]) -> str:
    figures = [measure(history) for history in histories]
    shown = columns(figures)
    winners = [best(column, figures) for column in shown]
    rows = [
        [
            cell(each.policy),
            *(
                cell(column.write(column.value(each)), "best" if index in wins else "")
                for column, wins in zip(shown, winners, strict=True)
            ),
        ]
        for index, each in enumerate(figures)
    ]
    return table(("policy", *(column.name for column in shown)), rows)


def _panel(data: Series, top: float) -> tuple[str, str]:
    return charts.utilisation(data, charts.NARROW), charts.queue(data, charts.NARROW, top)


def _curves(histories: Sequence[History]) -> tuple[str, str]:
    legend = [(history.policy, f"--c{index % 8}") for index, history in enumerate(histories)]
    return key(legend), charts.wait_shares([(history.policy, waits(history)) for history in histories])
