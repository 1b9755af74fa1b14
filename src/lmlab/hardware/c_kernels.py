"""Kernels in C, made on the machine they run on, for exactly its processor, and kept in the cache folder.

Where there is no compiler, or what it makes cannot be loaded (a cache that forbids running files), there are none, and who asks
takes the plain way; `lmlab machine` says which and why. Nothing is loaded that another user could have put there.

A file that shares its work by OpenMP is linked to the one that torch has loaded. One that does not needs no torch: it is called
from several threads of Python, which a function in C leaves free to run.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from lmlab.disk.files import cache_folder, made_folder
from lmlab.hardware.versions import fingerprint, usable_cores

COMPILERS = ("gcc", "cc", "clang")
# Sums keep the order in which they are written: only what nobody here asks for (errno, traps) is left out.
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
TRIED: tuple[tuple[str, ...], ...] = (
    ("-march=native", "-fopenmp"),
    ("-march=native",),
    (),
)  # clang may have no OpenMP that fits torch's
SHARES_WORK = b"#pragma omp"
# Where a file asks that products be rounded before they are added, gcc has to be told by a flag: it does not heed the standard.
ROUNDS_EACH, TOLD = b"#pragma STDC FP_CONTRACT OFF", "-ffp-contract=off"
LONGEST_S = 60.0  # that a compiler may take for one file
PROBE, PLAIN_PROBE = Path(__file__).with_name("probe.c"), Path(__file__).with_name("plain_probe.c")
# Environment: does without, or takes them without asking whether they are faster here (`races.py`).
SWITCH, OFF, ALWAYS = "LMLAB_C_KERNELS", ("off", "0", "no", "false"), ("always", "on", "1", "yes", "true")


@contextmanager
def no_c_kernels() -> Iterator[None]:
    """Without them while it lasts: for what must come out the same, to the last bit, wherever it is computed.

    In this thread: another that begins or ends doing without in the meantime changes nothing here.
    """
    _WITHOUT.depth = getattr(_WITHOUT, "depth", 0) + 1
    try:
        yield
    finally:
        _WITHOUT.depth -= 1


_WITHOUT = threading.local()


def made(source: Path, *, shared: bool = False) -> ctypes.CDLL | None:
    """The functions of a file of C, compiled at first use; None where that is not possible here or not wanted now.

    shared: only such as all cores can share; of those that use one of many, torch's own are faster.
    """
    if getattr(_WITHOUT, "depth", 0) or why_not(source, shared=shared):
        return None
    return _made(source).library


def decided_on(source: Path) -> ctypes.CDLL:
    """The functions, for who has found them `made` before: a backward pass goes the way its forward pass went."""
    found = _made(source)
    assert found.library is not None, found.trouble
    return found.library


def why_not(source: Path, *, shared: bool = False) -> str:
    """One line on why there are no functions, or none that all cores can share; empty where there are some.

    It is cores that count, not the threads of the moment: those change while a run learns, and its numbers shall not.
    """
    if os.environ.get(SWITCH, "").lower() in OFF:
        return f"{SWITCH}={os.environ[SWITCH]}"
    found = _made(source)
    if shared and found.library is not None and not found.shares and usable_cores() > 1:
        return f"they use one of {usable_cores()} cores: the compiler has no OpenMP that fits torch's"
    return found.trouble


def is_kept(source: Path) -> bool:
    """Whether the next process finds the functions made; else every one makes them anew."""
    return _made(source).kept


def compiler_here() -> list[str] | None:
    """The command of a C compiler: $CC, else the first of the usual ones that is there."""
    if chosen := os.environ.get("CC"):
        with suppress(ValueError):
            words = shlex.split(chosen)
            if words and shutil.which(words[0]):
                return words
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


class _Made(NamedTuple):
    library: ctypes.CDLL | None
    trouble: str = ""  # why there is none
    shares: bool = False  # whether its functions can share their work among threads
    kept: bool = False  # whether the next process finds it


class _TooSlow(Exception):
    """A compiler that hangs is not asked again, in other words or for another file."""


_SLOW: dict[tuple[str, ...], str] = {}  # compilers that hung, and what was said of them


@functools.cache
def _made(source: Path) -> _Made:
    """The functions, or why there are none. Once a process."""
    if sys.platform == "win32":
        return _Made(None, "there is no way to make them on Windows yet")
    compiler = compiler_here()
    if compiler is None:
        return _Made(None, f"there is no C compiler ({', '.join(COMPILERS)}, or $CC)")
    if tuple(compiler) in _SLOW:
        return _Made(None, _SLOW[tuple(compiler)])
    tried, text = TRIED, source.read_bytes()
    if ROUNDS_EACH in text:
        tried = tuple((*flags, TOLD) for flags in tried)
    if SHARES_WORK in text:
        from lmlab.hardware.openmp import lent_to_kernels

        lent_to_kernels()
    else:
        tried = tuple(flags for flags in tried if "-fopenmp" not in flags)
    trouble = ""
    for folder in (_kept_folder, _passing_folder):
        try:
            place = folder()
        except OSError as error:
            trouble = trouble or f"no folder to make them in: {error.strerror or error}"
            continue
        for flags in tried:
            try:
                library, said = _loaded(source, compiler, flags, place)
            except _TooSlow as slow:
                _SLOW[tuple(compiler)] = str(slow)
                return _Made(None, str(slow))
            if library is not None:
                return _Made(library, shares="-fopenmp" in flags, kept=folder is _kept_folder)
            trouble = trouble or said
    return _Made(None, trouble)


def _loaded(source: Path, compiler: list[str], flags: tuple[str, ...], folder: Path) -> tuple[ctypes.CDLL | None, str]:
    name = f"{source.stem}-{_key(source, compiler, flags)}"
    for _ in range(2):
        path = _whole(folder, name)
        if path is None:
            try:
                said = _compile(source, compiler, flags, folder, name)
            except OSError as error:  # a folder that takes no more, or nothing at all
                said = f"nothing can be made in {folder}: {error.strerror or error}"
            path = _whole(folder, name)
            if path is None:
                return None, said or f"what {compiler[0]} made is gone again"
        try:
            return ctypes.CDLL(str(path)), ""
        except OSError as error:  # damaged, or of flags whose library is not here: made anew once
            said = f"what {compiler[0]} made cannot be loaded: {error}"
            with suppress(OSError):
                path.unlink()
    return None, said


def _whole(folder: Path, name: str) -> Path | None:
    """The file of this name, if it is as long as when it was made: loading one that was cut short would end the process."""
    for path in folder.glob(f"{name}-*.so"):
        with suppress(FileNotFoundError):  # another process may be clearing the cache
            if path.stem.rpartition("-")[2] == str(path.stat().st_size):
                return path
    return None


def _compile(source: Path, compiler: list[str], flags: tuple[str, ...], folder: Path, name: str) -> str:
    """Make the file, whole or not at all, with its size in its name; the first line of what went wrong, if something did.

    Linked without OpenMP: it is the library that torch has loaded that the functions find, not a second one beside it, whose
    threads would fight for the cores.
    """
    _sweep(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as work:
        middle, end = str(Path(work) / "kernel.o"), str(Path(work) / "kernel.so")
        libraries = ["-lm"] if sys.platform != "darwin" else ["-undefined", "dynamic_lookup"]
        for command in (
            [*compiler, *FLAGS, *flags, "-x", "c", "-c", str(source), "-o", middle],  # C, also for one of C++
            [*compiler, "-shared", middle, "-o", end, *libraries],
        ):
            try:
                status, said = _asked(command)
            except subprocess.TimeoutExpired:
                raise _TooSlow(f"{compiler[0]} took longer than {LONGEST_S:g} s") from None
            except OSError as error:
                return f"{compiler[0]}: {error.strerror or error}"
            if status:
                lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()
                return f"{compiler[0]} failed: {lines[0] if lines else status}"
        try:
            os.replace(end, folder / f"{name}-{os.path.getsize(end)}.so")
        except OSError as error:
            return f"{compiler[0]} made nothing: {error.strerror or error}"
    return ""


def _asked(command: list[str]) -> tuple[int, str]:
    """How a compiler ended, and what it complained of; one that takes too long is ended, with all that it began."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,  # whatever is written to lmlab is not for a compiler
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=LONGEST_S)
        return process.returncode, said
    except BaseException:  # Ctrl-C too: in a session of its own a compiler does not hear it
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed while it compiled left there."""
    for left in folder.glob(".*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > 60 * LONGEST_S:
                shutil.rmtree(left)


def _kept_folder() -> Path:
    """In the cache, and of this user alone: a folder among the temporary files could have been made by anybody."""
    folder = made_folder(cache_folder()).resolve() / "kernels"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = folder.lstat()
    mine = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    if not mine or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, "others may write there", str(folder))
    if any(map(_can_be_exchanged_in, folder.parents)):
        raise PermissionError(0, "others may put another folder in its place", str(folder))
    return folder


def _can_be_exchanged_in(above: Path) -> bool:
    """Whether another user could rename what is mine in this folder, and put something else there under its name."""
    about = above.stat()
    if about.st_uid not in (os.getuid(), 0, Path("/").stat().st_uid):
        return True
    if about.st_mode & stat.S_ISVTX:  # as in /tmp: only the owner renames
        return False
    mine = about.st_gid in (os.getgid(), 0)  # many a system gives every user a group, and lets it write
    return bool(about.st_mode & stat.S_IWOTH) or bool(about.st_mode & stat.S_IWGRP and not mine)


@functools.cache
def _passing_folder() -> Path:
    """Of this process alone; what is made there is made again by the next."""
    holder = tempfile.TemporaryDirectory(prefix="lmlab-kernels-")
    _HOLDERS.append(holder)  # deleted at the end of the process
    return Path(holder.name)


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _key(source: Path, compiler: list[str], flags: tuple[str, ...]) -> str:
    """Of everything that decides what comes out: the files, the compiler, the processor."""
    files = [source, *sorted(source.parent.glob("*.h"))]
    said = [fingerprint(), _version_of_torch() if "-fopenmp" in flags else "", *compiler, *FLAGS, *flags]
    said.append(_version(tuple(compiler)))
    return hashlib.sha256(b"\0".join([*(s.encode() for s in said), *(f.read_bytes() for f in files)])).hexdigest()[:16]


def _version_of_torch() -> str:
    import torch

    return torch.__version__


@functools.cache
def _version(compiler: tuple[str, ...]) -> str:
    """Where the compiler lies and when it was put there: asking it would take longer than loading what it made."""
    path = Path(shutil.which(compiler[0]) or compiler[0])
    try:
        about = path.resolve().stat()
    except OSError:
        return str(path)
    return f"{path.resolve()} {about.st_mtime_ns} {about.st_size}"
