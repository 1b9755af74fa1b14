"""Taking from this process, for good, what code of others needs to remember or to look things up: files and the network.

Linux does it by Landlock (kernel 5.13 and later), without any privilege; other systems have nothing like it that a process may
use by itself. A new network namespace, where the kernel permits one, closes the network as a whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on all processors
_NO_NEW_PRIVILEGES = 38  # of prctl
_NEW_USER, _NEW_NETWORK, _NEW_IPC = 0x10000000, 0x40000000, 0x08000000  # of unshare
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 15
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many kinds of access to files a version of Landlock knows
_FOR_PROGRAMS = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/dev/urandom",
    "/dev/null",
    "/proc/cpuinfo",
    "/sys/devices/system/cpu",
)
_FOR_CUDA = ("/proc", "/sys")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def close_files_and_network(paths: Iterable[str], *, cuda: bool = False) -> str:
    """Deny this process all files but programs and Python modules, and the network; in words, what was closed.

    paths: where Python finds modules (`sys.path`): of folders outside the installation, Python files and packages alone
        stay readable.
    cuda: leave what the driver of a GPU needs.
    """
    closed = []
    _write_nothing()
    with contextlib.suppress(OSError, AttributeError):  # without a new user, only root may have a new network
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_USER | _NEW_NETWORK | _NEW_IPC) == 0:
            closed.append("the network")
    if sys.platform == "linux" and _restrict(dict(_allowed(paths, cuda))):
        closed.insert(0, "files")
    return " and ".join(closed)


def _write_nothing() -> None:
    """No file that this process writes may be longer than nothing."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _allowed(paths: Iterable[str], cuda: bool) -> Iterator[tuple[str, int]]:
    """(path, access) of all that stays open."""
    read = _READ_FILE | _READ_DIR | _EXECUTE
    installed = [str(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix, Path(__file__).parents[1])]
    yield from ((path, read) for path in (*_FOR_PROGRAMS, *installed))
    if cuda:
        yield from ((path, read) for path in _FOR_CUDA)
        yield from ((str(path), _READ_FILE | _WRITE_FILE | _IOCTL) for path in Path("/dev").glob("nvidia*"))
    for entry in map(Path, paths):
        folder = entry.resolve()
        if not folder.is_dir() or any(folder.is_relative_to(prefix) for prefix in installed):
            continue
        yield str(folder), _READ_DIR  # names, so that Python finds modules; no contents
        for inside in folder.iterdir():
            if inside.suffix in (".py", ".so"):
                yield str(inside), _READ_FILE | _EXECUTE
            elif (inside / "__init__.py").exists():
                yield str(inside), read


def _restrict(allowed: dict[str, int]) -> bool:
    """Whether this process has no access to files from now on but what is allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    rights = (1 << _RIGHTS[min(version, 5)]) - 1
    rules = _Ruleset(rights, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    if ruleset < 0:
        return False
    for path, access in allowed.items():
        with contextlib.suppress(OSError):  # not every system has every path
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            of_file = access & rights & ~(0 if os.path.isdir(path) else _READ_DIR)
            libc.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(_Beneath(of_file, opened)), 0)
            os.close(opened)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return done
