"""The ledger for people and for monitoring: a summary, Prometheus metrics, and a picture."""

from typing import Any

from muster.elastic.ledger import Account, Bucket, goodput, merged

COLOURS = {
    Bucket.QUEUE: "#c9c9c9",
    Bucket.STARTUP: "#9ecae1",
    Bucket.USEFUL: "#31a354",
    Bucket.STALL: "#fdae6b",
    Bucket.RECONFIGURE: "#756bb1",
    Bucket.RECOMPUTED: "#e34a33",
    Bucket.IDLE: "#f0f0f0",
    Bucket.UNKNOWN: "#636363",
}
WIDTH, ROW, LEFT, TOP = 900, 22, 150, 46


def report(accounts: list[Account]) -> dict[str, Any]:
    totals = merged(accounts)
    return {"gpu_seconds": totals, "goodput": goodput(totals)}


def metrics(job: str, accounts: list[Account], described: dict[str, Any]) -> str:
    label = job.replace("\\", "\\\\").replace('"', '\\"')
    lines = ["# TYPE muster_elastic_gpu_seconds counter"]
    for bucket, seconds in merged(accounts).items():
        lines.append(f'muster_elastic_gpu_seconds{{job="{label}",bucket="{bucket}"}} {seconds:.6f}')
    for name in ("size", "step", "epoch", "last_snapshot"):
        lines.append(f"# TYPE muster_elastic_{name} gauge")
        lines.append(f'muster_elastic_{name}{{job="{label}"}} {described[name]}')
    return "\n".join(lines) + "\n"


def summarised(accounts: list[Account]) -> str:
    """A few lines of text: the share of each bucket, most first."""
    totals = merged(accounts)
    spent = sum(totals.values()) or 1.0
    rows = sorted(((s, b) for b, s in totals.items() if s > 0), reverse=True)
    lines = [f"  {bucket:<12} {seconds:9.1f} s  {seconds / spent:6.1%}" for seconds, bucket in rows]
    head = f"{spent:.1f} GPU-seconds on {len(accounts)} GPUs, goodput {goodput(totals):.1%}"
    return "\n".join([head, *lines])


def drawn(job: str, accounts: list[Account]) -> str:
    """One row per GPU, time from left to right, a colour per bucket."""
    spans = [(a.gpu, *s) for a in accounts for s in a.timeline]
    first = min((s[1] for s in spans), default=0.0)
    last = max((s[1] + s[2] for s in spans), default=1.0)
    scale = (WIDTH - LEFT - 10) / max(last - first, 1e-9)
    rows = {a.gpu: i for i, a in enumerate(sorted(accounts, key=lambda a: a.begun))}
    height = TOP + ROW * len(rows) + 24
    size = f'width="{WIDTH}" height="{height}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<rect {size} fill="white"/>',
        f'<text x="8" y="16" font-size="13">{_safe(job)}: goodput {goodput(merged(accounts)):.1%}</text>',
    ]
    for i, (bucket, colour) in enumerate(COLOURS.items()):
        x = 8 + i * 110
        out.append(f'<rect x="{x}" y="24" width="10" height="10" fill="{colour}" stroke="#999"/>')
        out.append(f'<text x="{x + 14}" y="33">{bucket}</text>')
    for gpu, row in rows.items():
        out.append(f'<text x="8" y="{TOP + row * ROW + 14}">{_safe(gpu)}</text>')
    for gpu, start, seconds, spent in spans:
        at, width = LEFT + (start - first) * scale, max(seconds * scale, 0.05)
        colour = COLOURS[Bucket(spent)]
        y = TOP + rows[gpu] * ROW
        out.append(f'<rect x="{at:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 4}" fill="{colour}"/>')
    out.append(f'<text x="{LEFT}" y="{height - 8}">0 s</text>')
    out.append(f'<text x="{WIDTH - 10}" y="{height - 8}" text-anchor="end">{last - first:.1f} s</text></svg>')
    return "\n".join(out)


def _safe(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
