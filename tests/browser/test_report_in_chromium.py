"""Reports in a real browser: nothing runs, nothing is loaded, nothing sticks out, and links lead somewhere.

Chromium opens two pages: one of a session with findings, and one in which all topics are meant to break it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.spark_analysis.reports.report_pages import HOSTILE, findings_capture, hostile_capture, page_of

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (sudo apt-get install chromium)"),
]

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-dev-shm-usage",
]
LISTEN = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""
NAMES = ("findings", "hostile")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as tool:
        found = tool.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=0)  # pytest ends a hang
        yield found
        found.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {"findings": page_of(findings_capture(folder)), "hostile": page_of(hostile_capture(folder))}
    # The same page as if escaping had failed: the policy is the second wall.
    broken = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><p style='color: red'>x</p>"
    texts["broken"] = texts["findings"].replace("<main>", f"<main>{broken}")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


@dataclass
class Opened:
    """A page, and all that happened while it was opened."""

    page: Any
    events: list[str] = field(default_factory=list)

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)


@contextmanager
def opened(
    browser: Any, file: Path, width: int = 1280, scheme: str = "light", media: str = "screen"
) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(0)
    page = context.new_page()
    page.emulate_media(media=media, color_scheme=scheme)
    page.add_init_script(LISTEN)
    seen = Opened(page)
    page.on("dialog", lambda dialog: _note_dialog(seen, dialog))
    page.on("console", lambda message: seen.events.append(f"console {message.text}"))
    page.on("pageerror", lambda error: seen.events.append(f"error {error}"))
    for what in ("request", "requestfinished"):
        page.on(what, lambda request, what=what: _note_request(seen, what, request.url, file))
    page.goto(file.as_uri(), wait_until="load")
    try:
        yield seen
    finally:
        context.close()


def _note_dialog(seen: Opened, dialog: Any) -> None:
    seen.events.append(f"dialog {dialog.message}")
    dialog.dismiss()


def _note_request(seen: Opened, what: str, url: str, file: Path) -> None:
    if url != file.as_uri() and not url.startswith("data:"):
        seen.events.append(f"{what} {url}")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_runs_nothing_is_loaded_and_nothing_is_complained_about(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name]) as seen:
        assert seen.run("document.scripts.length") == 0
        assert seen.run("typeof window.hacked") == "undefined"
        assert seen.run("window.violations") == []
        assert seen.events == []
        assert seen.run("document.title").startswith("fail: ")


def test_if_markup_came_through_the_policy_would_stop_it(browser: Any, files: dict[str, Path]) -> None:
    """Shows, too, that the test above would notice."""
    with opened(browser, files["broken"]) as seen:
        assert seen.run("document.scripts.length") == 1
        assert seen.run("typeof window.hacked") == "undefined"
        assert {"script-src-elem", "img-src", "style-src-attr"} <= set(seen.run("window.violations"))
        kinds = {event.partition(" ")[0] for event in seen.events}
        assert kinds == {"console", "request"}  # asked for, refused, complained about, and never loaded


def test_hostile_topics_are_read_as_text(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hostile"]) as seen:
        text = seen.page.inner_text("body")
        for topic in (HOSTILE[0], HOSTILE[1], "\\x1b[31mred\\x07", "gnp.exe", "&lt;b&gt;&#60;"):
            assert topic in text
        assert seen.run("getComputedStyle(document.querySelector('h1')).display") == "block"  # no style of a topic


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [380, 1280])
def test_nothing_sticks_out(browser: Any, files: dict[str, Path], name: str, width: int) -> None:
    with opened(browser, files[name], width) as seen:
        seen.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
        wide, room = seen.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= room == width
        assert seen.run(OUTSIDE) == []


# What is not in a box that scrolls, and yet ends behind the right edge.
OUTSIDE = """
[...document.body.querySelectorAll("*")]
  .filter((one) => !one.parentElement.closest(".scroll") && one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_what_they_name(browser: Any, files: dict[str, Path], name: str) -> None:
    with opened(browser, files[name]) as seen:
        links = seen.page.locator("a")
        assert links.count() >= 7
        for at in range(links.count()):
            links.nth(at).click()
            target = links.nth(at).get_attribute("href")
            top = seen.run(f"document.querySelector({target!r}).getBoundingClientRect().top")
            assert -1 <= top < 900, target
        assert seen.events == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("scheme", "media", "shown"),
    [("light", "screen", "on-light"), ("dark", "screen", "on-dark"), ("dark", "print", "on-light")],
)
def test_light_dark_and_paper_show_pictures_that_fit(
    browser: Any, files: dict[str, Path], name: str, scheme: str, media: str, shown: str
) -> None:
    with opened(browser, files[name], scheme=scheme, media=media) as seen:
        visible = seen.run(
            "[...document.images].filter((one) => one.offsetParent !== null).map((one) => one.className)"
        )
        assert len(visible) >= 8
        assert set(visible) == {shown}
        assert seen.run("[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
        back, text = (
            _brightness(seen.run(f"getComputedStyle(document.body).{what}")) for what in ("backgroundColor", "color")
        )
        assert (back < 60 and text > 200) if shown == "on-dark" else (back > 240 and text < 60)


def _brightness(colour: str) -> float:
    """Of `rgb(1, 2, 3)`."""
    parts = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(parts) / 3


def test_it_prints_on_paper(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hostile"], width=718, media="print") as seen:  # A4 less margins
        assert seen.run("document.documentElement.scrollWidth") <= 718
        paper = seen.page.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        assert 2 <= paper.count(b"/Type /Page\n") <= 40


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_read_aloud(browser: Any, files: dict[str, Path], name: str) -> None:
    with opened(browser, files[name]) as seen:
        assert seen.run("document.documentElement.lang") == "en"
        levels = seen.run("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((one) => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert seen.run("[...document.images].every((one) => one.alt.length > 20)")
        tables = "[...document.querySelectorAll('table')]"
        assert seen.run(f"{tables}.every((one) => one.caption && one.querySelector('thead th[scope=col]'))")
