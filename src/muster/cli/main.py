"""The `muster` command: finds the verb, runs it, and turns what went wrong into one line and an exit code.

Exit codes: 0 done, 1 what the verb says, 2 bad usage or bad input, 130 interrupted, 141 the reader went away.
Anything else that escapes is a bug, and shows its traceback.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from muster import __doc__ as about
from muster import __version__
from muster.cli.verbs import VERBS, Verb
from muster.errors import UserError

INTERRUPTED = 130
READER_GONE = 141
# Packages of the elastic runtime; every other one that may be missing comes with the scheduler.
_ELASTIC = frozenset({"torch"})


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of two paragraphs, and never guesses at a shortened option."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Bad usage is bad input."""
        raise UserError(f"{message}; see '{self.prog} --help'")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the return value is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _dispatch(words)
        sys.stdout.flush()  # a reader that went away shows here at the latest
    except UserError as error:
        print(f"{_spoken_to(words)}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return READER_GONE
    return code


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in {"-h", "--help"}:
        print(_overview())
        return 0
    if words[0] == "--version":
        print(f"muster {__version__}")
        return 0
    return _run(_verb(words[0]), words[1:])


def _run(verb: Verb, words: list[str]) -> int:
    try:
        module = verb.load()
        parser = OneLineParser(prog=f"muster {verb.name}", description=module.HELP)
        module.add_arguments(parser)
        return module.run(parser.parse_args(words))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in {"", "muster"}:
            raise
        raise _missing(package) from error


def _missing(package: str) -> UserError:
    extra = "elastic" if package in _ELASTIC else "scheduler"
    return UserError(f"needs {package}, which is not installed; run: pip install 'muster-scheduler[{extra}]'")


def _verb(name: str) -> Verb:
    for verb in VERBS:
        if verb.name == name:
            return verb
    if name.startswith("-"):
        raise UserError(f"unknown option {name}; see 'muster --help'")
    raise UserError(f"unknown verb '{name}'; {_suggestion(name)}")


def _suggestion(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, [verb.name for verb in VERBS], n=1)
    return f"did you mean 'muster {near[0]}'?" if near else "see 'muster --help'"


def _spoken_to(words: list[str]) -> str:
    """Who speaks in an error: the verb if there is one, else the command."""
    return f"muster {words[0]}" if words[0] in {verb.name for verb in VERBS} else "muster"


def _overview() -> str:
    width = max((len(verb.name) for verb in VERBS), default=0)
    rows = [f"  {verb.name:<{width}}  {verb.summary}" for verb in VERBS]
    return "\n".join(
        [
            str(about).strip(),
            "",
            "usage: muster VERB [ARGUMENT ...]",
            "       muster VERB --help | --help | --version",
            "",
            *rows,
        ]
    ).rstrip()


def _discard_output() -> None:
    """Point stdout nowhere, or the interpreter complains about the broken pipe once more when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
