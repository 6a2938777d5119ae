"""The results of simulations as a terminal shows them: tables, and small charts made of block characters."""

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from muster.model.node import Node
from muster.sim.metrics import Metrics, Numbers, Spread, measure, reasons
from muster.sim.outcome import History
from muster.sim.report.compare import best, columns
from muster.sim.report.page import machine
from muster.sim.series import series, span
from muster.sim.words import count, duration, percent, ratio

_BLOCKS = " ▁▂▃▄▅▆▇█"
_LABELS = 28  # beside a chart: what it shows, and its scale
_NARROWEST, _WIDEST = 20, 72
_REASONS = 5


def run_result(history: History, nodes: Sequence[Node], width: int) -> RenderableType:
    """One run: the spreads, the totals, how full and how long the queue over time, what never started."""
    figures = measure(history)
    parts: list[RenderableType] = [
        _title(history, nodes, f" under {history.policy}"),
        _spreads(figures),
        _totals(figures),
        _charts([history], width),
    ]
    parts += [Text(f"never started: {count(n)} x {reason}", "red") for reason, n in reasons(history)[:_REASONS]]
    return Group(*parts)


def comparison(histories: Sequence[History], nodes: Sequence[Node], width: int) -> RenderableType:
    """Several runs: one row each, the best of every column in bold, and one chart."""
    figures = [measure(history) for history in histories]
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("policy", no_wrap=True)
    same = all(each.goodput == each.utilisation for each in figures)
    shown = [column for column in columns(figures) if not (same and column.name == "goodput")]
    for column in shown:
        table.add_column(column.name, justify="right", no_wrap=True)
    winners = [best(column, figures) for column in shown]
    for row, each in enumerate(figures):
        cells = [
            Text(column.write(column.value(each)), "bold green" if row in wins else "")
            for column, wins in zip(shown, winners, strict=True)
        ]
        table.add_row(each.policy, *cells)
    return Group(_title(histories[0], nodes), table, _charts(histories, width))


def spark(values: Numbers, top: float) -> str:
    """One character per value, an eighth of `top` per step; anything above nothing shows."""
    levels = [min(8, -int(-8 * value // top)) if value > 0 and top > 0 else 0 for value in values.tolist()]
    return "".join(_BLOCKS[level] for level in levels)


def _title(history: History, nodes: Sequence[Node], policy: str = "") -> Text:
    jobs = f"{count(len(history.outcomes))} jobs"
    return Text.assemble((history.workload.name + policy, "bold"), f" · {jobs} · {machine(history, nodes)}")


def _spreads(figures: Metrics) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for name in ("mean", "median", "p95", "p99", "max"):
        table.add_column(name, justify="right")
    table.add_row("wait", *_cells(figures.wait, duration))
    table.add_row("bounded slowdown", *_cells(figures.slowdown, ratio))
    table.add_row("submission to end", *_cells(figures.completion, duration))
    return table


def _cells(values: Spread, write: Callable[[float], str]) -> list[str]:
    return [write(v) for v in (values.mean, values.median, values.p95, values.p99, values.max)]


def _totals(figures: Metrics) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    first = [("utilisation", percent(figures.utilisation)), ("goodput", percent(figures.goodput))]
    first += [("makespan", duration(figures.makespan)), ("backfilled", count(figures.backfilled))]
    second = [("started", f"{count(figures.started)} of {count(figures.jobs)}")]
    if figures.deadlines:
        second.append(("missed deadlines", f"{count(figures.missed_deadlines)} of {count(figures.deadlines)}"))
    if figures.restarts:
        second.append(("restarts", count(figures.restarts)))
    for entries in (first, second):
        table.add_row(*(Text.assemble((name + " ", "dim"), (value, "bold")) for name, value in entries))
    return table


def _charts(histories: Sequence[History], width: int) -> Table:
    """How full (of the whole) and how long the queue (of the longest seen) over time, on one axis."""
    between = span(histories)
    names = max(len(history.policy) for history in histories) if len(histories) > 1 else 0
    steps = min(_WIDEST, max(_NARROWEST, width - _LABELS - names))
    data = [series(history, steps, between) for history in histories]
    longest = max(float(each.waiting.max()) for each in data)
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(4):
        table.add_column(no_wrap=True)
    for history, each in zip(histories, data, strict=True):
        name = history.policy if len(histories) > 1 else ""
        table.add_row(name, Text("in use", "dim"), Text(spark(each.busy, 1.0), "blue"), Text("of 100 %", "dim"))
        queue = Text(spark(each.waiting, longest), "magenta")
        table.add_row("", Text("waiting", "dim"), queue, Text(f"of {count(longest)} jobs", "dim"))
    table.add_row("", "", Text(f"0{duration(between[1] - between[0]):>{steps - 1}}", "dim"), "")
    return table
