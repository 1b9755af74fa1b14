"""How fast a page of `lmlab explain` opens and scrolls in a browser: milliseconds until it is drawn, and of frames.

    python bench/bench_inside_page.py PAGE.html [PAGE.html …]

Needs chromium and playwright. A page is opened three times, then scrolled from top to bottom by the wheel. Times of the clock
say what a user waits on this machine under the load it has; processor time of the main thread says what the page costs.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPENED = "addEventListener('load', () => requestAnimationFrame(() => setTimeout(() => { window.drawn = performance.now(); })))"
COUNT_FRAMES = """() => {
  performance.mark("scrolling");
  window.frameTimes = []; window.counting = true;
  let last = performance.now();
  const tick = now => { frameTimes.push(now - last); last = now; if (counting) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""
AT_END = "scrollY + innerHeight >= document.documentElement.scrollHeight - 2"


def measured(browser: Any, page: Path) -> str:
    """One line for a page."""
    opened = []
    for _ in range(3):
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.add_init_script(OPENED)
        tab.goto(page.absolute().as_uri())
        tab.wait_for_function("window.drawn")
        opened.append(tab.evaluate("drawn"))
        tab.close()
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    browser.start_tracing(page=tab, categories=["toplevel", "blink.user_timing"])
    tab.goto(page.absolute().as_uri())
    tab.wait_for_timeout(1000)
    tab.evaluate(COUNT_FRAMES)
    tab.mouse.move(1270, 450)
    for _ in range(300):
        tab.mouse.wheel(0, 120)
        tab.wait_for_timeout(16)
        if tab.evaluate(AT_END):
            break
    frames = sorted(tab.evaluate("counting = false, frameTimes")[1:])
    opening, scrolling = _tasks(json.loads(browser.stop_tracing())["traceEvents"])
    tab.close()
    return (
        f"{page.name}: {page.stat().st_size / 1e6:.1f} MB, drawn after {statistics.median(opened):.0f} ms"
        f" ({sum(opening):.0f} ms of processor time), frames {statistics.median(frames):.1f} ms in the median,"
        f" {frames[int(0.95 * len(frames))]:.0f} at 95%, {frames[-1]:.0f} at worst; the longest task takes"
        f" {max(opening):.0f} ms while it opens and {max(scrolling):.0f} ms while it scrolls"
    )


def _tasks(events: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Milliseconds of processor time of the tasks of the page's main thread, before and after scrolling began."""
    mark = next(event for event in events if event["name"] == "scrolling")
    tasks = [
        event
        for event in events
        if event["name"] == "ThreadControllerImpl::RunTask"
        and (event["pid"], event["tid"]) == (mark["pid"], mark["tid"])
    ]
    before, after = (
        [event.get("tdur", 0) / 1000 for event in tasks if (event["ts"] >= mark["ts"]) is later] or [0.0]
        for later in (False, True)
    )
    return before, after


if __name__ == "__main__":
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        for name in sys.argv[1:]:
            print(measured(browser, Path(name)))
        browser.close()
