"""`make bench [ONLY=brain,simulator]`: run the benchmarks, print one table, write out/bench.json."""

import importlib
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.measure import Measure

LARGE = 10_000
MODULES = ("brain", "simulator", "kube_client", "local_cluster", "local_nodes")


def main() -> int:
    chosen = sys.argv[1].split(",") if len(sys.argv) > 1 and sys.argv[1] else list(MODULES)
    unknown = [name for name in chosen if name not in MODULES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(MODULES)}", file=sys.stderr)
        return 2
    results = {name: importlib.import_module(f"bench.{name}").run() for name in chosen}
    Console().print(table(results))
    out = Path("out", "bench.json")
    out.parent.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    measures = {name: [asdict(m) | {"met": m.met} for m in lines] for name, lines in results.items()}
    out.write_text(json.dumps({"on": machine, "measures": measures}, indent=1))
    print(f"written: {out}")
    return 0


def table(results: dict[str, list[Measure]]) -> Table:
    grid = Table("what", "", "aim", "", "peer", "ratio", box=None)
    for name, lines in results.items():
        grid.add_row(f"[bold]{name}[/bold]")
        for line in lines:
            aim = f"≤ {line.at_most:,g}" if line.at_most is not None else ""
            aim = f"≥ {line.at_least:,g}" if line.at_least is not None else aim
            met = {True: "met", False: "missed", None: ""}[line.met]
            peer = f"{line.peer:.3g} {line.peer_name}" if line.peer is not None else ""
            ratio = f"{line.peer / line.value:.2f} ×" if line.peer is not None else ""
            value = f"{line.value:,.3g}" if line.value < LARGE else f"{line.value:,.0f}"
            grid.add_row(line.name, f"{value} {line.unit}", aim, met, peer, ratio)
    return grid


if __name__ == "__main__":
    sys.exit(main())
