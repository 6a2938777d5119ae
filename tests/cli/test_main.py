"""The command: finding verbs, one-line errors, exit codes, and real processes that are interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

import muster
from muster.cli import main as command
from muster.cli.main import main
from muster.cli.verbs import VERBS, Verb
from muster.errors import UserError
from tests.cli import fake

FAKE = Verb("fake", "tests.cli.fake", fake.HELP)
SCRIPT = "import sys; from muster.cli import main; from tests.cli.test_main import FAKE; main.VERBS = (FAKE,); "
Lines = Sequence[str]


@pytest.fixture(autouse=True)
def fake_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command knows one verb, a fake."""
    monkeypatch.setattr(command, "VERBS", (FAKE,))


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run, expect bad usage, and return the one line that was said."""
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err.rstrip("\n")


def test_the_verb_decides_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fake", "--lines", "2"]) == 0
    assert main(["fake", "--lines", "1"]) == 1
    assert capsys.readouterr().out == "line 0\nline 1\nline 0\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_the_overview_lists_the_verbs(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "usage: muster VERB" in out
    assert "  fake  do as told\n" in out


def test_a_verb_has_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["fake", "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: muster fake ")
    assert "do as told" in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"muster {muster.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fkae"], "muster: unknown verb 'fkae'; did you mean 'muster fake'?"),
        (["zzz"], "muster: unknown verb 'zzz'; see 'muster --help'"),
        (["--verbose"], "muster: unknown option --verbose; see 'muster --help'"),
        (["fake", "--line", "1"], "muster fake: unrecognized arguments: --line 1; see 'muster fake --help'"),
        (
            ["fake", "--lines", "x"],
            "muster fake: argument --lines: invalid int value: 'x'; see 'muster fake --help'",
        ),
        (
            ["fake", "--lines", "0", "--how", "input"],
            "muster fake: trace.swf:7: submit time 'x' is not a number; write seconds",
        ),
        (
            ["fake", "--lines", "0", "--how", "missing"],
            f"muster fake: {command._missing('surely_not_installed')}",
        ),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert error_of(capsys, *words) == said


def test_bad_choices_name_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    said = error_of(capsys, "fake", "--how", "badly")
    assert said.startswith("muster fake: argument --how: invalid choice: 'badly'")
    assert "well" in said


def test_what_is_missing_is_named_with_the_command_that_brings_it() -> None:
    said = "needs numpy, which is not installed; run: pip install 'muster-scheduler[scheduler]'"
    assert str(command._missing("numpy")) == said


def test_torch_comes_with_another_extra() -> None:
    assert "muster-scheduler[elastic]" in str(command._missing("torch"))


def test_a_missing_module_of_our_own_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "VERBS", (Verb("ghost", "muster.cli.ghost", "not there"),))
    with pytest.raises(ModuleNotFoundError):
        main(["ghost"])


def test_bugs_keep_their_traceback() -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        main(["fake", "--how", "bug"])


def test_a_user_error_is_one_line() -> None:
    assert str(UserError("a\n  b")) == "a b"


def _process(code: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", f"{SCRIPT}{code}", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_an_interrupt_is_quiet() -> None:
    with _process("sys.exit(main.main())", "fake", "--how", "hang", "--lines", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "hanging\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    with _process("sys.exit(main.main())", "fake", "--lines", "1000000") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "line 0\n"
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == ""


def test_help_imports_no_verb_and_no_dependency() -> None:
    """Every row's own module counts as imported by its verb alone."""
    code = "import sys; from muster.cli import main; main.main(['--help']); print('loaded', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "muster.cli.verbs" in loaded
    assert not loaded & {"numpy", "aiohttp", "msgspec", "rich", "torch", *(row.module for row in VERBS)}


def test_every_row_matches_its_module() -> None:
    for row in VERBS:
        module = row.load()
        assert (row.name, row.summary) == (module.NAME, module.HELP)
    assert len({row.name for row in VERBS}) == len(VERBS)
