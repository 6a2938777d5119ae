"""The authority as a process of its own: takes over the job's record, then serves it until it is deposed."""

import json
import sys
import threading
from pathlib import Path

from muster.elastic.authority import Terms
from muster.elastic.protocol import decode
from muster.elastic.record import Deposed, RecordFile
from muster.elastic.serve import begin
from muster.elastic.wire import job_secret, split_address


def main(argv: list[str]) -> int:
    terms = decode(Terms, json.loads(argv[0]))
    host, port = split_address(argv[1])
    server, hub = begin(terms, RecordFile(Path(argv[2]) / "record.json"), job_secret(), host, port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        hub.tick()
    except Deposed as error:
        print(f"muster.elastic authority: {error}; this one ends", file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
