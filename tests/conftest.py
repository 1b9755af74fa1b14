"""Fixtures that many tests share."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Lmlab, Result
from lmlab.cli.app import main
from lmlab.disk.locks import in_turn
from lmlab.hardware.c_kernels import SWITCH, made
from lmlab.hardware.openmp import set_threads
from lmlab.layers.fast import attention_in_c, one_row_in_c, recurrence_in_c
from lmlab.learn import curve_figures
from lmlab.models import _ngram_in_c
from lmlab.text import words_in_c
from some_text import TEXT
from undrawn import LOSS_FIGURE, undrawn_loss

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


NUMBERS = itertools.count()
CACHE_IS_GIVEN = "LMLAB_CACHE" in os.environ
IN_C = (attention_in_c, one_row_in_c, recurrence_in_c, words_in_c, _ngram_in_c)


@pytest.fixture(scope="session", autouse=True)
def one_thread_and_a_cache_for_what_tests_share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that serve several tests are made before the fixtures of any test."""
    set_threads(1)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a script in the background; tests press Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        if not CACHE_IS_GIVEN:
            patch.setenv("LMLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        if SWITCH not in os.environ:  # what is tested shall not depend on who is faster beside other tests
            patch.setenv(SWITCH, "always")
        patch.setattr("lmlab.learn.fit.at_this_moment", lambda hardware: hardware)  # measured by tests/hardware alone
        patch.setattr(curve_figures, "loss_figure", undrawn_loss)
        yield


@pytest.fixture(scope="session")
def kernels(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The kernels in C, made once for all processes and sessions: making them all takes ten seconds.

    They lie beside what pytest keeps from one session to the next. Tests get a copy, which they may damage.
    """
    session = tmp_path_factory.mktemp("kernels")
    kept = pytestconfig.cache.mkdir("c-kernels") if hasattr(pytestconfig, "cache") else session
    with pytest.MonkeyPatch.context() as patch, in_turn(kept):
        patch.setenv("LMLAB_CACHE", str(kept))
        libraries = [made(module.SOURCE) for module in IN_C]
    files = [Path(library._name) for library in libraries if library]
    return [Path(shutil.copy(path, session)) for path in files if path.is_relative_to(kept.resolve())]


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def one_thread_and_own_cache(caches: Path, kernels: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run side by side, so each takes one thread; and none touches the user's cache folder."""
    set_threads(1)
    if not CACHE_IS_GIVEN:
        cache = caches / str(next(NUMBERS))  # of which the rest is made by whoever keeps something in it
        if kernels:
            (cache / "kernels").mkdir(mode=0o700, parents=True)
        for path in kernels:
            os.link(path, cache / "kernels" / path.name)
        monkeypatch.setenv("LMLAB_CACHE", str(cache))


@pytest.fixture
def drawn_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of runs with their curve; otherwise they have an empty picture."""
    monkeypatch.setattr(curve_figures, "loss_figure", LOSS_FIGURE)


@pytest.fixture
def small_text(tmp_path: Path) -> Path:
    """A file of a few thousand characters."""
    path = tmp_path / "small.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def shared_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same file, for what several tests of a module look at."""
    path = tmp_path_factory.mktemp("shared") / "small.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="session")
def bench_data() -> Path:
    """The folder of real data, or a skip that says how to give one."""
    folder = os.environ.get("LMLAB_BENCH_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set LMLAB_BENCH_DATA to the folder that holds it")
    return Path(folder)


@pytest.fixture
def lmlab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Lmlab:
    """Runs the command line as the script would, in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr("sys.argv", ["lmlab", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        result = Result((int(end.value.code or 0), captured.out, captured.err))
        result.code = getattr(end.value.__context__, "code", "") if end.value.code == 2 else ""
        return result

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Needs chromium and playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-page installs it")
    if CHROMIUM is None:
        pytest.skip("needs chromium: make test-page installs it")
    with playwright.sync_playwright() as p:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        browser = p.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A tab that keeps what goes wrong and what is asked for."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.problems, tab.requests = [], []
    tab.on("console", lambda m: tab.problems.append(m.text) if m.type in ("error", "warning") else None)
    tab.on("pageerror", lambda e: tab.problems.append(str(e)))
    tab.on("request", lambda r: tab.requests.append(r.url))
    yield tab
    tab.close()
