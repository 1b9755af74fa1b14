"""How far a piece of work is, as it is told where there is no terminal."""

from __future__ import annotations

import pytest

from command_line import Lmlab, done
from lmlab.cli.show import progress


def test_what_takes_long_in_measuring_is_told_on_stderr(
    lmlab: Lmlab, small_text: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(lmlab("train", "ngram", small_text, "--out", "run"))
    quick, said = lmlab("eval", "run"), "for the certificate"
    assert said not in quick[2]
    monkeypatch.setattr(progress, "PLAIN_EVERY_S", 0.0)
    monkeypatch.setattr(progress, "FIRST_PLAIN_S", 0.0)
    code, out, err = lmlab("eval", "run")
    assert (code, out.splitlines()[0]) == (0, quick[1].splitlines()[0])
    assert "eval: 0% · scoring" in err
    assert "eval: 100% · scoring" in err
    assert said in err
