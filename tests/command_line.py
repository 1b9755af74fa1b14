"""What tests of the command line share: what running a command gives, how it ends well, and how it is refused."""

from __future__ import annotations

from collections.abc import Callable

Result = tuple[int, str, str]  # exit code, stdout, stderr
Lmlab = Callable[..., Result]  # what the fixture `lmlab` is: called with the words of a command


def done(result: Result) -> str:
    """Exit code 0; what stands on stdout."""
    code, out, err = result
    assert code == 0, err
    return out


def refused(result: Result, *words: str) -> None:
    """Exit code 2, nothing on stdout, one line on stderr with these words."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert err.startswith("lmlab: "), err
    assert err.count("\n") == 1, err
    assert all(word in err for word in words), err
