"""The HTML around the charts: one self-contained page, for one run or for several side by side."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from muster import __version__
from muster.model.node import Node
from muster.sim.metrics import Metrics, measure, reasons, waits
from muster.sim.outcome import History, Outcome
from muster.sim.report import charts
from muster.sim.report.gantt import gantt, is_map
from muster.sim.series import series, span
from muster.sim.slots import Slots
from muster.sim.words import count, duration, percent, ratio

_STEPS = 540
_LONGEST = 10
_REASONS = 12
_UNITS = {"cpu": "CPUs", "nvidia.com/gpu": "GPUs", "nvidia.com/gpu-milli": "GPUs"}


def run_page(history: History, slots: Slots, nodes: Sequence[Node]) -> str:
    """The report on one run."""
    figures = measure(history)
    between = span([history])
    data = series(history, _STEPS, between)
    title = f"{history.workload.name} under {history.policy}"
    return document(
        title,
        _under(history, nodes),
        _tiles(figures),
        _gantt_section(history, slots, gantt(history, slots, nodes, between)),
        section("In use", "share of the cluster held by running jobs", charts.utilisation(data)),
        section("Waiting", "jobs in the queue", charts.queue(data)),
        section("Waits", "how many jobs waited how long", charts.wait_bars(waits(history))),
        _longest(history),
        _never(history),
    )


def document(title: str, under: str, *parts: str) -> str:
    style = files("muster.sim.report").joinpath("style.css").read_text()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="under">{escape(under)}</p>{"".join(parts)}'
        f"<footer>muster {__version__}</footer></main></body></html>\n"
    )


def section(heading: str, hint: str, *parts: str) -> str:
    return f'<section><h2>{escape(heading)}</h2><p class="hint">{escape(hint)}</p>{"".join(parts)}</section>'


def key(entries: Sequence[tuple[str, str]]) -> str:
    """A legend: names and the CSS colours they stand for."""
    items = "".join(f'<span><i style="background:var({colour})"></i>{escape(name)}</span>' for name, colour in entries)
    return f'<div class="key">{items}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already, each with its own `<td>`."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def cell(words: str, kind: str = "") -> str:
    return f'<td class="{kind}">{escape(words)}</td>' if kind else f"<td>{escape(words)}</td>"


def machine(history: History, nodes: Sequence[Node]) -> str:
    many = f"{count(len(nodes))} nodes" if len(nodes) > 1 else "one node"
    return f"{count(history.capacity)} {_UNITS.get(history.unit, history.unit)} in {many}"


def _under(history: History, nodes: Sequence[Node]) -> str:
    ties = "" if history.tie_break == "batch" else f" · order of events: {history.tie_break}"
    return f"{count(len(history.outcomes))} jobs on {machine(history, nodes)}{ties}"


def _tiles(figures: Metrics) -> str:
    tiles = [
        ("mean wait", duration(figures.wait.mean), ""),
        ("median wait", duration(figures.wait.median), ""),
        ("95 % waited at most", duration(figures.wait.p95), ""),
        ("99 % waited at most", duration(figures.wait.p99), ""),
        ("longest wait", duration(figures.wait.max), ""),
        ("bounded slowdown, mean", ratio(figures.slowdown.mean), ""),
        ("utilisation", percent(figures.utilisation), ""),
        ("goodput", percent(figures.goodput), ""),
        ("makespan", duration(figures.makespan), ""),
        ("jobs backfilled", count(figures.backfilled), ""),
    ]
    if figures.deadlines:
        tiles.append((f"missed of {count(figures.deadlines)} deadlines", count(figures.missed_deadlines), "bad"))
    if figures.never_started:
        tiles.append(("jobs never started", count(figures.never_started), "bad"))
    cells = "".join(
        f'<div class="tile {kind}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value, kind in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def _gantt_section(history: History, slots: Slots, drawing: str) -> str:
    if is_map(slots):
        return section("Who held what", "too many jobs to draw each: the stronger the colour, the fuller", drawing)
    legend = [("started in queue order", "--job")]
    if any(outcome.backfilled for outcome in history.outcomes):
        legend.append(("backfilled", "--back"))
    return section("Who held what", "one box per job; point at one for its figures", key(legend), drawing)


def _longest(history: History) -> str:
    started = [outcome for outcome in history.outcomes if outcome.started is not None]
    worst = sorted(started, key=_wait, reverse=True)[:_LONGEST]
    if not worst or not _wait(worst[0]):
        return ""
    rows = [
        (
            cell(outcome.job.id),
            cell(duration(_wait(outcome))),
            cell(count(outcome.job.gang.members)),
            cell(duration((outcome.finished or 0.0) - (outcome.started or 0.0))),
        )
        for outcome in worst
    ]
    return section("Waited longest", f"the first {len(rows)}", table(("job", "waited", "members", "ran"), rows))


def _never(history: History) -> str:
    found = reasons(history)[:_REASONS]
    if not found:
        return ""
    rows = [(cell(count(number)), cell(reason, "words")) for reason, number in found]
    return section("Never started", "and why", table(("jobs", "reason"), rows))


def _wait(outcome: Outcome) -> float:
    return (outcome.started or 0.0) - outcome.job.gang.submitted
