"""The report in headless Chromium, wide and narrow, light and dark."""

from __future__ import annotations

import json
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from scripts.lib.analysis.summary import Summary
from scripts.lib.report.render import write_report
from tests.report.sample_summary import sample_summary
from tests.report.test_report_text import hostile, many_variants

pytestmark = pytest.mark.browser
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    if not (BROWSER and DRIVER):
        pytest.skip("needs chromium and chromedriver (Debian: apt install chromium-driver)")
    options = Options()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def long_names() -> Summary:
    data = many_variants()
    for one in data["variants"]:
        one["label"] = one["label"] + "-" + "x" * 120
        one["scheme_words"] = "w" * 200
    data["host"]["cpu"]["model"] = "cpu" * 60
    data["decision"]["rollback"][0]["expression"] = "rate(" + "a" * 400 + ")"
    return Summary.model_validate(data)


STUDIES = {"sample": sample_summary, "hostile": hostile, "long": long_names}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, make in STUDIES.items():
        write_report(make(), folder / name / "report")
    return folder


def show(browser, page, width, scheme="light"):
    """Open a page with everything unfolded; return the addresses it asked for."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("width", [1280, 1000, 800, 390])
def test_it_fits_and_asks_nobody(browser, pages, study, width):
    page = pages / study / "report" / "report.html"
    requests = show(browser, page, width)
    assert set(requests) <= {page.as_uri(), "data:,"}
    wide = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => "
        "e.getBoundingClientRect().right > innerWidth + 1 && e.closest('svg') === null && "
        "getComputedStyle(e).clipPath === 'none' && !e.closest('thead'))"
        ".map(e => e.outerHTML.slice(0, 200))"
    )
    assert wide == []
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.get_log("browser") == []


def accessible(browser, role):
    browser.execute_cdp_cmd("Accessibility.enable", {})
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [
        (node.get("name", {}).get("value", ""), node.get("description", {}).get("value", ""))
        for node in nodes
        if node.get("role", {}).get("value") == role and not node.get("ignored")
    ]


def test_figures_have_names_and_descriptions(browser, pages):
    show(browser, pages / "sample" / "report" / "report.html", 1280)
    figures = dict(accessible(browser, "image"))
    assert len(figures) == 8
    assert "35.9 at 1, 97 at 4, 132 at 8" in figures["Output throughput by concurrency"]
    assert all(figures.values())


@pytest.mark.parametrize("width", [1280, 390])
def test_tables_stay_tables_for_a_screen_reader(browser, pages, width):
    show(browser, pages / "sample" / "report" / "report.html", width)
    assert len(accessible(browser, "table")) > 15
    assert len(accessible(browser, "columnheader")) > 60


CONTRAST = """
const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
const light = c => { const [r, g, b] = c.map(v => { v /= 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b };
const paper = e => { for (; e; e = e.parentElement) {
  const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length === 3 || c[3] > 0.99) return c.slice(0, 3) } return [255, 255, 255] };
const poor = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !e.checkVisibility()) continue;
  if (e.closest('title,desc,.symbol')) continue;
  const style = getComputedStyle(e);
  const ink = parse(e.closest('svg') ? style.fill : style.color).slice(0, 3);
  const [a, b] = [light(ink), light(paper(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(walk.currentNode.data.slice(0, 40) + ' ' + ink);
}
return poor;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, pages, scheme):
    show(browser, pages / "sample" / "report" / "report.html", 1280, scheme)
    assert browser.execute_script(CONTRAST) == []


def test_hostile_text_runs_nothing(browser, pages):
    show(browser, pages / "hostile" / "report" / "report.html", 1280)
    assert browser.execute_script("return document.scripts.length") == 0
    assert browser.execute_script("return document.styleSheets.length") == 1


def test_links_lead_to_the_studys_files(browser, pages):
    target = pages / "sample" / "runs" / "bf16" / "chat" / "session1" / "load.json"
    show(browser, pages / "sample" / "report" / "report.html", 1280)
    links = browser.execute_script("return [...document.links].map(a => a.href)")
    assert target.as_uri() in links
