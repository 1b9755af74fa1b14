"""`lmlab.compress` and `lmlab.decompress`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake
from lmlab.disk.files import free_file
from lmlab.learn.run_advice import how_to_resume

if TYPE_CHECKING:
    from lmlab.compression.compress_files import Coded, Compressed
    from lmlab.compression.text_codec import Progress
    from lmlab.learn.run import Run


def compress(
    file: str | Path,
    *,
    model: Run | str | Path,
    out: str | Path,
    streams: int = 1,
    check: bool = False,
    force: bool = False,
    device: str = "cpu",
    watch: Progress | None = None,
) -> Compressed:
    """Compress a text with a trained model, by arithmetic coding, to the bits that `evaluate` claims.

    Args:
        file: the text in UTF-8, plain or gzip; "-" is standard input.
        model: the run, or its folder.
        out: the file to write.
        streams: parts of the text that are coded side by side.
        check: decompress the result and compare it with the text before writing.
        force: replace `out` if it exists.
        device: where the model runs; the file can be decompressed on this kind of device alone.
        watch: called with the number of tokens done, and of all tokens.
    """
    target = free_file(out, force)
    from lmlab.compression.compress_files import compress_file

    return compress_file(file, _loaded(model, device), target, streams=streams, check=check, watch=watch)


def decompress(
    file: str | Path,
    *,
    model: Run | str | Path,
    out: str | Path,
    force: bool = False,
    device: str = "cpu",
    watch: Progress | None = None,
) -> Coded:
    """Decompress a file that `compress` wrote, byte for byte, with the run it was compressed with.

    Args:
        file: the compressed file; "-" is standard input.
    """
    target = free_file(out, force)
    from lmlab.compression.compress_files import decompress_file

    return decompress_file(Path(file), lambda: _loaded(model, device), target, watch=watch)


def _loaded(run: Run | str | Path, device: str) -> Run:
    """Return the run with its model on that device. An unfinished run is refused: its weights will change."""
    from lmlab.learn.run import opened

    run = opened(run)
    if run.status == "unfinished":
        raise Mistake(
            f"{run.folder} is unfinished, and its weights will change; finish it first: {how_to_resume(run.folder)}",
            code="export-unfinished",
        )
    run.load(device)
    return run
