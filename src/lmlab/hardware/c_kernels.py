"""Kernels in C, made on the machine they run on, for exactly its processor, and kept in the cache folder.

Where there is no compiler, or what it makes cannot be loaded (a cache that forbids running files), there are none, and who asks
takes the plain way; `lmlab machine` says which and why. Nothing is loaded that another user could have put there.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from lmlab.hardware.openmp import lent_to_kernels
from lmlab.hardware.versions import fingerprint
from lmlab.text.files import cache_folder, made_folder

COMPILERS = ("gcc", "cc", "clang")
# Sums keep the order in which they are written: only what nobody here asks for (errno, traps) is left out.
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
TRIED = (("-march=native", "-fopenmp"), ("-march=native",), ())  # clang may have no OpenMP that fits torch's
LONGEST_S = 60.0  # that a compiler may take for one file
PROBE = Path(__file__).with_name("probe.c")
SWITCH = "LMLAB_C_KERNELS"  # environment: "off" does without


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


def made(source: Path) -> ctypes.CDLL | None:
    """The functions of a file of C, compiled at first use; None where that is not possible here or not wanted now."""
    if getattr(_WITHOUT, "depth", 0) or os.environ.get(SWITCH, "").lower() == "off":
        return None
    return _made(source)[0]


def decided_on(source: Path) -> ctypes.CDLL:
    """The functions, for who has found them `made` before: a backward pass goes the way its forward pass went."""
    library, trouble = _made(source)
    assert library is not None, trouble
    return library


def why_not(source: Path) -> str:
    """One line on why there are no functions; empty where there are some."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return f"{SWITCH}=off"
    return _made(source)[1]


def can_take(tensor: torch.Tensor) -> bool:
    """Whether a kernel can be given this: numbers in memory, or what pretends to be that (`pretends`)."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) or pretends(tensor)


def pretends(tensor: torch.Tensor) -> bool:
    """Whether it has a shape but no memory, as where a step is gone through to see what it would take: no kernel runs then."""
    return type(tensor).__module__ == "torch._subclasses.fake_tensor"


def compiler_here() -> list[str] | None:
    """The command of a C compiler: $CC, else the first of the usual ones that is there."""
    if chosen := os.environ.get("CC"):
        with suppress(ValueError):
            words = shlex.split(chosen)
            if words and shutil.which(words[0]):
                return words
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


@functools.cache
def _made(source: Path) -> tuple[ctypes.CDLL | None, str]:
    """The functions, or why there are none. Once a process."""
    if sys.platform == "win32":
        return None, "there is no way to make them on Windows yet"
    compiler = compiler_here()
    if compiler is None:
        return None, f"there is no C compiler ({', '.join(COMPILERS)}, or $CC)"
    lent_to_kernels()
    trouble = ""
    for folder in (_kept_folder, _passing_folder):
        try:
            place = folder()
        except OSError as error:
            trouble = trouble or f"no folder to make them in: {error.strerror or error}"
            continue
        for flags in TRIED:
            library, said = _loaded(source, compiler, flags, place)
            if library is not None:
                return library, ""
            trouble = trouble or said
    return None, trouble


def _loaded(source: Path, compiler: list[str], flags: tuple[str, ...], folder: Path) -> tuple[ctypes.CDLL | None, str]:
    path = folder / f"{source.stem}-{_key(source, compiler, flags)}.so"
    for _ in range(2):
        if not path.exists():
            said = _compile(source, compiler, flags, path)
            if said:
                return None, said
        try:
            return ctypes.CDLL(str(path)), ""
        except OSError as error:  # damaged, or of flags whose library is not here: made anew once
            said = f"what {compiler[0]} made cannot be loaded: {error}"
            with suppress(OSError):
                path.unlink()
    return None, said


def _compile(source: Path, compiler: list[str], flags: tuple[str, ...], path: Path) -> str:
    """Make the file, whole or not at all; the first line of what went wrong, if something did.

    Linked without OpenMP: it is the library that torch has loaded that the functions find, not a second one beside it, whose
    threads would fight for the cores.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as work:
        middle, end = str(Path(work) / "kernel.o"), str(Path(work) / "kernel.so")
        libraries = ["-lm"] if sys.platform != "darwin" else ["-undefined", "dynamic_lookup"]
        for command in (
            [*compiler, *FLAGS, *flags, "-c", str(source), "-o", middle],
            [*compiler, "-shared", middle, "-o", end, *libraries],
        ):
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"{compiler[0]}: {error}"
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
                return f"{compiler[0]} failed: {lines[0] if lines else done.returncode}"
        try:
            os.replace(end, path)
        except OSError as error:
            return f"{compiler[0]} made nothing: {error.strerror or error}"
    return ""


def _kept_folder() -> Path:
    """In the cache, and of this user alone: a folder among the temporary files could have been made by anybody."""
    folder = cache_folder() / "kernels"
    made_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = folder.lstat()
    mine = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()
    if not mine or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, "others may write there", str(folder))
    return folder


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
    said = [fingerprint(), torch.__version__, *compiler, *FLAGS, *flags]
    said.append(_version(tuple(compiler)))
    return hashlib.sha256(b"\0".join([*(s.encode() for s in said), *(f.read_bytes() for f in files)])).hexdigest()[:16]


@functools.cache
def _version(compiler: tuple[str, ...]) -> str:
    """Where the compiler lies and when it was put there: asking it would take longer than loading what it made."""
    path = Path(shutil.which(compiler[0]) or compiler[0])
    try:
        about = path.resolve().stat()
    except OSError:
        return str(path)
    return f"{path.resolve()} {about.st_mtime_ns} {about.st_size}"
