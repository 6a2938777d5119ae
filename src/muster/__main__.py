"""`python -m muster` is the `muster` command, for where scripts are not on the path."""

import sys

from muster.cli.main import main

sys.exit(main())
