"""Where the big public traces lie, for the tests that need them: they are not part of the project."""

import os
from pathlib import Path

import pytest


def traces() -> Path:
    """MUSTER_TRACES, or `../shared/traces` next to the checkout; else skips the test."""
    folder = Path(os.environ.get("MUSTER_TRACES") or Path(__file__).parents[3] / "shared" / "traces")
    if not folder.is_dir():
        pytest.skip(f"public traces are not at {folder}; set MUSTER_TRACES to the folder that holds them")
    return folder
