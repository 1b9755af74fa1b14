"""What tests of the command line share: what running a command gives, how it ends well, and how it is refused."""

from __future__ import annotations

from collections.abc import Callable

from mistakes import speaks_of


class Result(tuple[int, str, str]):
    """Exit code, stdout and stderr of a command.

    code: that of the mistake that ended it; empty where none did.
    """

    code: str = ""


Lmlab = Callable[..., Result]  # what the fixture `lmlab` is: called with the words of a command


def done(result: Result) -> str:
    """Exit code 0; what stands on stdout."""
    code, out, err = result
    assert code == 0, err
    return out


def refused(result: Result, *words: str) -> None:
    """Exit code 2, nothing on stdout, one line on stderr: of a mistake with that code or these short words."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert err.startswith("lmlab: "), err
    assert err.count("\n") == 1, err
    speaks_of(result.code, err, words)
