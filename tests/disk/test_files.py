"""The folder for what can be made again."""

from __future__ import annotations

from lmlab.disk.files import cache_folder


def test_the_cache_can_be_put_anywhere(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LMLAB_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("LMLAB_CACHE")
    assert cache_folder().name.lower() in ("lmlab", "cache")
