"""Kernels in C are made where that is possible, and where it is not nothing fails."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lmlab.hardware import c_kernels, report
from lmlab.hardware.c_kernels import PLAIN_PROBE, PROBE, made, no_c_kernels, why_not
from processes import FORKED

MAKE = "from lmlab.hardware.c_kernels import PROBE, made; assert made(PROBE).lmlab_probe(1) == 1"
needs_a_compiler = pytest.mark.skipif(c_kernels.compiler_here() is None, reason="there is no C compiler")


@pytest.fixture(autouse=True)
def nothing_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv(c_kernels.SWITCH, raising=False)
    c_kernels._made.cache_clear()
    c_kernels._passing_folder.cache_clear()
    c_kernels._SLOW.clear()


def kept(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "kernels").glob("*"))


@needs_a_compiler
def test_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = made(PROBE)
    assert library is not None
    assert library.lmlab_probe(1) == 1
    assert len(kept(tmp_path)) == 1
    assert stat.S_IMODE((tmp_path / "cache" / "kernels").stat().st_mode) == 0o700
    c_kernels._made.cache_clear()
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: pytest.fail("it was made again"))
    assert made(PROBE) is not None


@needs_a_compiler
def test_it_shares_its_work_by_the_openmp_of_torch() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("looks at /proc")
    in_a_process(one_openmp)


def one_openmp(cache: str) -> None:
    os.environ["LMLAB_CACHE"] = cache
    library = made(PROBE)
    assert library is not None
    assert library.lmlab_probe(2) == 2
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "libgomp" in line or "libomp" in line}
    assert len(loaded) == 1, loaded


def make_the_probe(cache: str) -> None:
    os.environ["LMLAB_CACHE"] = cache
    library = made(PROBE)
    assert library is not None
    assert library.lmlab_probe(1) == 1


def in_a_process(work: Callable[[str], None]) -> None:
    """Do it where nothing of the kernels is loaded. What is loaded here is not read again."""
    process = FORKED.Process(target=work, args=(os.environ["LMLAB_CACHE"],))
    process.start()
    process.join()
    assert process.exitcode == 0


@needs_a_compiler
def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    in_a_process(make_the_probe)
    (name,) = kept(tmp_path)
    path = tmp_path / "cache" / "kernels" / name
    path.write_bytes(b"not a library")
    assert made(PROBE) is not None
    assert path.read_bytes()[:4] == b"\x7fELF" or sys.platform == "darwin"


@needs_a_compiler
@pytest.mark.slow
def test_a_file_that_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    """By a copy that was not finished, or a loss of power: loaded as it is, it would end the process."""
    in_a_process(make_the_probe)
    (name,) = kept(tmp_path)
    path = tmp_path / "cache" / "kernels" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:5000])
    in_a_process(make_the_probe)
    assert len(path.read_bytes()) == len(whole)


def test_without_a_compiler_there_are_none_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None)
    assert made(PROBE) is None
    assert "no C compiler" in why_not(PROBE)
    said = report._kernels_in_c("cpu")
    assert (said.chosen, "no C compiler" in said.why) == ("none", True)


@pytest.mark.parametrize(
    "script", ["exit 1", "echo 'kernel.c: error: no good' >&2; exit 1", "exit 0", 'touch "${@: -1}"'], ids=str
)
def test_a_compiler_that_does_not_work(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert made(PROBE) is None
    assert why_not(PROBE)
    assert "\n" not in why_not(PROBE)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(c_kernels.SWITCH, "off")
    assert made(PROBE) is None
    assert why_not(PROBE) == f"{c_kernels.SWITCH}=off"
    monkeypatch.delenv(c_kernels.SWITCH)
    with no_c_kernels():
        assert made(PROBE) is None


@needs_a_compiler
def test_doing_without_is_for_one_thread_alone() -> None:
    """Two that overlap: who ends first does not let the other have them, and who ends last does not take them from all."""
    first, second = no_c_kernels(), no_c_kernels()
    with ThreadPoolExecutor(1) as elsewhere:
        first.__enter__()
        assert elsewhere.submit(made, PROBE).result() is not None
        elsewhere.submit(second.__enter__).result()
        first.__exit__(None, None, None)
        assert made(PROBE) is not None
        assert elsewhere.submit(made, PROBE).result() is None
        elsewhere.submit(second.__exit__, None, None, None).result()
        assert elsewhere.submit(made, PROBE).result() is not None


@needs_a_compiler
def test_a_compiler_that_is_asked_for_and_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "nonsense -O9")
    said = report._kernels_in_c("cpu")
    assert said.chosen == "yes"
    assert "for CC=nonsense -O9 is not there" in said.why
    monkeypatch.delenv("CC")
    assert "is not there" not in report._kernels_in_c("cpu").why


@needs_a_compiler
def test_kernels_for_one_core_are_said_to_be_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_kernels, "TRIED", ((),))
    monkeypatch.setattr(c_kernels, "usable_cores", lambda: 4)
    said = report._kernels_in_c("cpu")
    assert (said.chosen, "one of 4 cores" in said.why) == ("to write texts and to count, not to train", True)


@needs_a_compiler
def test_a_compiler_of_plain_c_alone_is_said_to_be_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = " ".join(c_kernels.compiler_here() or ())
    compiler_of(tmp_path, monkeypatch, f'case "$*" in */probe.c*) exit 1;; esac; exec {gcc} "$@"')
    said = report._kernels_in_c("cpu")
    assert (said.chosen, "failed: 1" in said.why) == ("to count, not to write texts or to train", True)


@needs_a_compiler
def test_whether_they_are_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "kept in the cache" in report._kernels_in_c("cpu").why
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "file" / "cache"))
    c_kernels._made.cache_clear()
    assert "anew by every process" in report._kernels_in_c("cpu").why


@needs_a_compiler
@pytest.mark.parametrize(
    ("text", "told", "shares"),
    [
        ("int f;", False, False),
        ("#pragma STDC FP_CONTRACT OFF\nint f;", True, False),
        ("#pragma omp flush\n", False, True),
        ("#pragma STDC FP_CONTRACT OFF\n#pragma omp flush\n", True, True),
    ],
)
def test_a_file_says_what_the_compiler_is_told(
    text: str, told: bool, shares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(c_kernels, "_asked", lambda command: (asked.append(command), (1, ""))[1])
    source = tmp_path / "some.c"
    source.write_text(text)
    assert made(source) is None
    compiled = [command for command in asked if "-c" in command]
    assert {c_kernels.TOLD in command for command in compiled} == {told}
    assert any("-fopenmp" in command for command in compiled) == shares


@needs_a_compiler
def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert made(PROBE) is not None, "it is made in a folder of this process alone"
    assert kept(tmp_path) == []
    shutil.rmtree(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    c_kernels._made.cache_clear()
    assert made(PROBE) is not None
    assert list(elsewhere.iterdir()) == []


@needs_a_compiler
def test_a_cache_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "file" / "cache"))
    assert made(PROBE) is not None


def compiler_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """From now on the compiler is this script."""
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))


@needs_a_compiler
def test_a_folder_that_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or one that was made read-only after the folder had been made."""
    honest, kernels = tempfile.TemporaryDirectory, tmp_path / "cache" / "kernels"

    def full(*a: object, **k: object) -> object:
        if k.get("dir") == kernels:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "there")
        return honest(*a, **k)  # type: ignore[call-overload]

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    assert made(PROBE) is not None, "it is made in a folder of this process alone"
    assert kept(tmp_path) == []


def test_a_compiler_that_hangs_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For whatever file; and what it began does not go on without it."""
    compiler_of(
        tmp_path, monkeypatch, f"echo x >> {tmp_path / 'asked'}; (sleep 1; touch {tmp_path / 'went-on'}) & wait"
    )
    monkeypatch.setattr(c_kernels, "LONGEST_S", 0.3)
    for source in (PROBE, PLAIN_PROBE):
        assert made(source) is None
        assert why_not(source).endswith("took longer than 0.3 s")
    assert (tmp_path / "asked").read_text() == "x\n"
    time.sleep(1.2)
    assert not (tmp_path / "went-on").exists()


def test_a_compiler_that_speaks_another_encoding_and_one_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler_of(tmp_path, monkeypatch, "cat; printf 'error: \\377\\376' >&2; exit 1")
    assert made(PROBE) is None
    assert "failed: error:" in why_not(PROBE)


@needs_a_compiler
def test_a_compiler_of_cpp_makes_c_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("g++"):
        pytest.skip("there is none")
    monkeypatch.setenv("CC", "g++")
    library = made(PROBE)
    assert library is not None
    assert library.lmlab_probe(1) == 1


@needs_a_compiler
def test_kernels_for_one_core_are_none_to_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a compiler without OpenMP: on one of sixty cores they would take longer than torch's own."""
    monkeypatch.setattr(c_kernels, "TRIED", ((),))
    monkeypatch.setattr(c_kernels, "usable_cores", lambda: 60)
    assert made(PROBE) is not None
    assert made(PROBE, shared=True) is None
    assert "one of 60 cores" in why_not(PROBE, shared=True)
    monkeypatch.setattr(c_kernels, "usable_cores", lambda: 1)
    assert made(PROBE, shared=True) is not None


@needs_a_compiler
def test_a_folder_that_others_could_exchange_is_not_trusted(tmp_path: Path) -> None:
    above = tmp_path / "cache"
    above.mkdir()
    above.chmod(0o777)
    assert made(PROBE) is not None
    assert kept(tmp_path) == []
    above.chmod(0o1777)  # as /tmp: everybody may put something there, and rename only that
    c_kernels._made.cache_clear()
    assert made(PROBE) is not None
    assert len(kept(tmp_path)) == 1


@needs_a_compiler
def test_what_a_killed_compiler_left_is_removed_one_day(tmp_path: Path) -> None:
    left, fresh = (tmp_path / "cache" / "kernels" / name for name in (".left", ".fresh"))
    for folder in (left, fresh):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "kernel.o").write_text("half")
    left.parent.chmod(0o700)
    os.utime(left, (0, 0))
    assert made(PROBE) is not None
    assert not left.exists()
    assert fresh.exists(), "another process may be at work there"


@pytest.mark.slow
@needs_a_compiler
def test_two_that_make_it_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", MAKE]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    assert len(kept(tmp_path)) == 1
