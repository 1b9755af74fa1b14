"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lmlab_derive.shared import files
from lmlab_derive.shared.files import atomic_file, write_atomically


def test_a_full_disk_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
    assert path.read_bytes() == b"old"


def test_where_nothing_can_be_written_the_error_names_the_file_that_was_asked_for(tmp_path, monkeypatch) -> None:
    def refuse(path: Path, **_: bool) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(files, "open", lambda path, _: refuse(path), raising=False)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError) as error:
        write_atomically(tmp_path / "page.html", b"new")
    assert error.value.filename == str(tmp_path / "page.html")


def test_a_file_is_not_there_before_it_is_complete(tmp_path) -> None:
    with atomic_file(tmp_path / "deep" / "file.txt") as file:
        file.write(b"half")
        assert not (tmp_path / "deep" / "file.txt").exists()
    assert (tmp_path / "deep" / "file.txt").read_bytes() == b"half"
