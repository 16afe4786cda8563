"""What a report says: every part there, nothing empty, nothing unescaped, always the same."""

from __future__ import annotations

import copy
import re
from functools import cache
from html.parser import HTMLParser

import pytest
from jinja2 import UndefinedError

from scripts.lib.analysis.summary import Summary
from scripts.lib.report.blocks import Report
from scripts.lib.report.numbers import change, number, size, times
from scripts.lib.report.render import (
    TEMPLATES,
    _environment,
    escape_markdown,
    fenced,
    inline_code,
    prose_markdown,
    render_html,
    render_markdown,
    write_report,
)
from scripts.lib.report.view import build_report
from scripts.render_report import main
from tests.report.sample_summary import sample, sample_summary


class Page(HTMLParser):
    """Collects what a test asks about: tags, addresses, ids, empty cells, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.empty_cells = 0
        self.handlers: list[str] = []
        self._cell: list[str] | None = None
        self._quiet = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            if key in ("href", "src", "xlink:href", "action"):
                self.addresses.append(value)
            if key == "id":
                self.ids.append(value)
            if key.startswith("on"):
                self.handlers.append(key)
        if tag in ("td", "th"):
            self._cell = []
        if tag == "style":
            self._quiet += 1
        if ("class", "label") in attrs and self._cell is not None:
            self._cell = None  # the label of a card is not the cell's content
            self._skip = True

    def handle_endtag(self, tag):
        if tag == "style":
            self._quiet -= 1
        if tag == "span" and getattr(self, "_skip", False):
            self._skip = False
            self._cell = []
        if tag in ("td", "th") and self._cell is not None:
            self.empty_cells += not "".join(self._cell).strip()
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell.append(data)
        if not self._quiet:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page(summary: Summary) -> Page:
    return Page(render_html(build_report(summary)))


@pytest.fixture(scope="module")
def report():
    return build_report(sample_summary())


@pytest.fixture(scope="module")
def html(report):
    return render_html(report)


@pytest.fixture(scope="module")
def whole(html):
    return Page(html)


@pytest.fixture(scope="module")
def markdown(report):
    return render_markdown(report)


def test_the_parts_stand_in_their_order(whole):
    anchors = [one for one in whole.ids if one in PARTS]
    assert anchors == PARTS


PARTS = ["answer", "environment", "workload", "slo", "results", "decision", "method", "files"]


@pytest.mark.parametrize(
    "words",
    [
        "Serve int8-w8a8: 1.69 times the baseline's output throughput at concurrency 8",
        "TPOT p95 stays above 200 ms for 10 minutes.",
        "the client's send lag p99 was 61 ms, over the limit of 25 ms",
        "too few: n=120, p95 needs 130",
        "Selected ChannelWiseTorchFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8",
        "ValueError: fp8 KV cache is not supported by the CPU backend.",
        "Leave kv_cache_dtype out, or serve this variant on a GPU.",
        "대한민국의 수도는 부산입니다.",
        "the baseline got 4 wrong too",
        "histogram_quantile(0.95, sum by (le) (rate("
        "vllm:request_time_per_output_token_seconds_bucket[5m]))) > 0.2",
        "passes up to 4, fails at 8",
        "Likely cause: Prefill is slower than the requests arrive.",
        "GPU memory and energy: this machine has no GPU.",
        "(E2EL - TTFT) / (output tokens - 1), per request",
        "int8-w8a8 is fastest at every level",
        "Prompts of more than 1,024 tokens were not tried.",
    ],
)
def test_the_page_says(whole, words):
    assert words in whole.text


def test_the_numbers_of_a_point_are_right(whole):
    # 131.8 against 77.9 tok/s; interval 3 % around it.
    assert "132" in whole.text
    assert "×1.69, better" in whole.text
    assert "128–136, n = 3" in whole.text
    # Weights 0.1564 against 0.2535 GiB, plan 1 % above.
    assert "0.1564 GiB −38 %" in whole.text
    assert "plan: 0.1580 GiB (measured −1 %)" in whole.text


def test_a_variant_is_never_named_without_what_ran(html):
    names = re.findall(r'<bdi class="name">([^<]*)</bdi>(.*?)</span></span>', html, re.S)
    assert len(names) > 40
    for label, rest in names:
        assert "stamp" in rest, label
    stamps = set(re.findall(r'class="stamp tone-(\w+)">([^<]*)<', html))
    assert ("warn", "runs as FP8 emulated (degraded)") in stamps
    assert ("bad", "did not start") in stamps


def test_no_cell_is_empty(whole):
    assert whole.empty_cells == 0


def test_ids_are_unique(whole):
    assert len(whole.ids) == len(set(whole.ids))


def test_addresses_are_anchors_or_files_of_the_study(whole):
    for address in whole.addresses:
        assert address.startswith(("#", "../", "data:,")), address
    linked = {a.removeprefix("../") for a in whole.addresses if a.startswith("../")}
    assert linked == set(sample()["files"])


def test_the_page_needs_no_script_and_no_other_host(html):
    assert "<script" not in html
    without_namespaces = html.replace("http://www.w3.org/2000/svg", "").replace(
        "http://www.w3.org/1999/xlink", ""
    )
    assert "://" not in without_namespaces
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_invalid_points_are_marked_and_grey(html):
    cell = re.search(
        r'<td[^>]*class="tone-muted numeric"(?:(?!</td>).)*69\.3(?:(?!</td>).)*', html, re.S
    )
    assert cell
    assert "invalid" in cell[0]


def test_a_run_that_was_left_out_is_said_beside_the_number():
    data = copy.deepcopy(sample()) | {"timelines": []}
    words = "2 of 3 repetitions stand behind the numbers, without repetition 3: lagged"
    point = next(p for p in data["points"] if p["valid"])
    point |= {"runs": 2, "left_out": [words]}
    text = page(Summary.model_validate(data)).text
    assert text.count("2 of 3 repetitions") >= 2
    assert words in text


def test_every_source_of_a_number_is_linked(whole):
    for point in sample()["points"]:
        for source in point["sources"]:
            assert f"../{source}" in whole.addresses


def test_a_file_that_is_not_there_is_not_linked():
    found = page(sample_summary(timelines=[], files={}))
    assert not [one for one in found.addresses if one.startswith("../")]
    assert "session1/load.json (not there)" in found.text


def test_nothing_is_measured_against_an_invalid_baseline():
    data = copy.deepcopy(sample()) | {"timelines": []}
    for point in data["points"]:
        if point["variant"] == "bf16" and point["level"] == 8:
            point |= {"valid": False, "invalid_reasons": ["lagged"], "slo_pass": None}
    text = page(Summary.model_validate(data)).text
    assert "×1.69" not in text
    assert "no valid baseline at this load" in text
    assert "at concurrency 4 of chat" in text


HOSTILE = '<b>x</b> "q" <script>alert(1)</script> & {{ 7*7 }} </style>'


@cache
def hostile_report() -> Report:
    return build_report(hostile())


def hostile() -> Summary:
    data = copy.deepcopy(sample())
    data["title"] = HOSTILE
    data["timelines"] = []
    data["variants"][1]["label"] = HOSTILE
    data["variants"][1]["environment"] = {"X": HOSTILE}
    data["verdicts"][1]["evidence"][1]["line"] = HOSTILE
    data["quality"][2]["examples"][0] |= {"prompt": HOSTILE, "variant": HOSTILE, "id": HOSTILE}
    data["failures"][0]["failure"]["line"] = HOSTILE
    data["decision"]["headline"] = HOSTILE
    data["points"][0]["sources"] = ["javascript:alert(1)", 'runs/"><b>/load.json']
    data["workloads"][0]["dataset_words"] = HOSTILE
    data["slo"][0]["words"] = HOSTILE
    return Summary.model_validate(data)


def test_hostile_text_stays_text(whole):
    found = Page(render_html(hostile_report()))
    assert "script" not in found.tags
    assert found.tags.count("b") == whole.tags.count("b") == 0
    assert found.tags.count("style") == 1
    assert "<b>x</b>" in found.text
    assert "{{ 7*7 }}" in found.text
    assert not found.handlers
    assert not [one for one in found.addresses if one.lower().startswith("javascript")]


def test_hostile_text_stays_text_in_markdown():
    text = render_markdown(hostile_report())
    outside = re.sub(r"(`{3,})text\n.*?\n\1", "", text, flags=re.S)
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1", "", outside)
    assert "<script" not in outside
    assert "<b>" not in outside
    assert re.findall(r"<(?!br>|details>|summary>|/details>|/summary>)\w*", outside) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", r"a\|b"),
        ("*x* _y_ `z`", r"\*x\* \_y\_ \`z\`"),
        ("ttft_p95_ms", "ttft_p95_ms"),
        ("[a](b)", r"\[a\](b)"),
        ("- item", r"\- item"),
        ("-6.3 points", "-6.3 points"),
        ("# 1", r"\# 1"),
        ("1. one", r"1\. one"),
        ("1.5 ms", "1.5 ms"),
        ("two\nlines", "two lines"),
        ("$x$ ~s~", r"\$x\$ \~s\~"),
        ("https://x.org", "https&#58;//x.org"),
        ("<b>", "&lt;b&gt;"),
    ],
)
def test_markdown_shows_text_as_it_is(text, expected):
    assert escape_markdown(text) == expected


def test_code_in_markdown_survives_its_own_fences():
    assert fenced("a\n```\nb").startswith("````text\n")
    assert inline_code("a`b") == "`` a`b ``"
    assert inline_code("a|b") == r"`a\|b`"
    assert prose_markdown("run `a b` now") == "run `a b` now"
    assert prose_markdown("one ` only") == r"one \` only"


def test_markdown_tables_are_whole(markdown):
    tables = re.findall(r"(?:^\|.*\|\n)+", markdown, re.M)
    assert len(tables) > 10
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table[:300]
        assert re.match(r"\|( (---|---:) \|)+$", table.splitlines()[1])


def test_markdown_says_what_the_page_says(markdown, whole):
    for words in ("Serve int8-w8a8", "did not start", "too few: n=120", "passes up to 4, fails"):
        assert words in markdown
        assert words in whole.text
    figures = re.findall(r"\]\((figures/[^)]+\.svg)\)", markdown)
    assert "figures/chat-throughput.svg" in figures
    assert len(figures) == len(set(figures)) == 8


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.j2")), ids=lambda path: path.name)
def test_templates_hold_no_arithmetic(path):
    for code in re.findall(r"\{[{%](.*?)[%}]\}", path.read_text(), re.S):
        assert not re.search(r"[-+*/%~]", re.sub(r'"[^"]*"', "", code).strip("-")), code


def test_a_template_that_names_something_unknown_fails():
    with pytest.raises(UndefinedError):
        _environment().from_string("{{ summary.nothing }}").render(summary=sample_summary())
    assert _environment().from_string("{{ x }}").render(x="<") == "&lt;"


def test_the_same_summary_gives_the_same_bytes(tmp_path, report, html, markdown):
    written = {path.name: path.read_text() for path in write_report(sample_summary(), tmp_path)}
    assert written.pop("report.html") == html
    assert written.pop("report.md") == markdown
    assert written == {f"{figure.name}.svg": figure.file_svg for figure in report.figures}
    assert len(written) == 8
    old = tmp_path / "figures" / "time-chat-bf16-1.svg"
    assert old.is_file()
    # Figures that a later report does not have are removed.
    write_report(sample_summary(timelines=[], points=[]), tmp_path)
    assert not old.exists()


def test_control_characters_and_direction_overrides_are_shown_not_obeyed():
    data = copy.deepcopy(sample()) | {"timelines": []}
    data["quality"][2]["examples"][0]["variant"] = "a\x1b[31mred\u202eevil"
    html = render_html(build_report(Summary.model_validate(data)))
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "&lt;U+202E&gt;evil" in html


def none_qualifies() -> dict:
    data = copy.deepcopy(sample()) | {"timelines": []}
    data["decision"] |= {
        "outcome": "none qualifies",
        "variant": None,
        "headline": "No variant qualifies: none keeps the SLO at any load.",
        "rollback": [],
        "rollback_command": None,
    }
    return data


MEASURED = (
    "points",
    "boundaries",
    "comparisons",
    "crossovers",
    "ledger",
    "quality",
    "timelines",
    "verdicts",
    "findings",
)


def all_failed() -> dict:
    data = none_qualifies()
    failure = data["failures"][0]
    data["failures"] = [{**failure, "variant": one["name"]} for one in data["variants"]]
    for one in data["variants"]:
        one["stamp"] = "unknown"
    for key in [
        "points",
        "boundaries",
        "comparisons",
        "crossovers",
        "ledger",
        "quality",
        "timelines",
        "verdicts",
        "findings",
    ]:
        data[key] = []
    data |= {"degradations": {}, "noise_floor": {}}
    return data


def one_variant() -> dict:
    data = copy.deepcopy(sample())
    for key in ("variants", "points", "ledger", "quality", "verdicts", "plans", "boundaries"):
        data[key] = [one for one in data[key] if one.get("name", one.get("variant")) == "bf16"]
    data |= {"failures": [], "comparisons": [], "crossovers": [], "timelines": [], "findings": []}
    data["degradations"] = {}
    data["decision"] |= {"variant": "bf16", "headline": "Keep bf16.", "rejected": {}}
    data["decision"]["candidates"] = data["decision"]["candidates"][:1]
    return data


def many_variants(count: int = 12) -> dict:
    data = copy.deepcopy(sample())
    data["timelines"] = []
    for key in ("variants", "points", "ledger", "quality", "verdicts"):
        mine = [one for one in data[key] if one.get("name", one.get("variant")) == "int8-w8a8"]
        for index in range(count - 4):
            name = f"extra-{index}"
            for one in copy.deepcopy(mine):
                one |= {"name": name, "label": name} if key == "variants" else {"variant": name}
                data[key].append(one)
    levels = [1, 2, 4, 8, 16, 32, 64, 128]
    data["points"] = [
        {**one, "level": level} for one in data["points"] for level in levels if one["level"] == 4
    ]
    return data


def nothing_set() -> dict:
    data = none_qualifies()
    for key in [
        "engines",
        "workloads",
        "slo",
        "plans",
        "verdicts",
        "ledger",
        "points",
        "boundaries",
        "comparisons",
        "crossovers",
        "quality",
        "findings",
        "failures",
        "timelines",
        "not_measured",
        "variants",
    ]:
        data[key] = []
    data |= {"noise_floor": {}, "degradations": {}, "formulas": {}, "files": {}}
    data["decision"] |= {"candidates": [], "rejected": {}, "limitations": [], "reasons": []}
    return data


def all_missing() -> dict:
    data = copy.deepcopy(sample()) | {"timelines": []}
    for point in data["points"]:
        point["metrics"] = {key: {"missing": "lost"} for key in point["metrics"]}
        point["steady"] = {}
    return data


CASES = {
    "none-qualifies": (none_qualifies, "No variant qualifies"),
    "all-failed": (all_failed, "No load point of chat was measured."),
    "one-variant": (one_variant, "Keep bf16."),
    "many": (many_variants, "Concurrency 128"),
    "nothing": (nothing_set, "The study has no variants."),
    "all-missing": (all_missing, "There is no figure"),
}


@pytest.mark.parametrize("case", CASES)
def test_unusual_studies_still_make_a_whole_report(case):
    make, words = CASES[case]
    report = build_report(Summary.model_validate(make()))
    found = Page(render_html(report))
    assert words in found.text
    assert found.empty_cells == 0
    assert len(found.ids) == len(set(found.ids))
    assert "nan" not in found.text.lower().split()
    assert "None" not in found.text.split()
    assert "# " in render_markdown(report)


def test_every_failed_variant_is_stamped_so():
    found = page(Summary.model_validate(all_failed()))
    assert found.text.count("did not start") >= 5


@pytest.mark.parametrize("kind", ["rate", "ramp"])
def test_open_loop_points_have_tables(kind):
    data = copy.deepcopy(sample()) | {"timelines": []}
    for point in data["points"]:
        point["kind"] = kind
    if kind == "ramp":
        data["points"] = [one | {"level": 0} for one in data["points"] if one["level"] == 4]
    text = page(Summary.model_validate(data)).text
    assert ("4 req/s" if kind == "rate" else "Ramp") in text


def test_numbers_read_well():
    assert [number(x) for x in (0, 131.84, 21.456, 0.12345, 444592, -3.2, 1e-5)] == [
        "0", "132", "21.5", "0.123", "444,592", "−3.20", "0.0000100",
    ]  # fmt: skip
    assert [change(x) for x in (0.57, 1.24, 1.001)] == ["−43 %", "+24 %", "±0 %"]
    assert times(1.6234) == "×1.62"
    assert size(14.25 * 1024**3) == "14.2 GiB"
    assert size(None) == "unknown"


def test_the_command_line_writes_the_report(tmp_path, capsys):
    summary = tmp_path / "summary.json"
    summary.write_text(sample_summary(timelines=[], points=[]).model_dump_json())
    assert main(["--summary", str(summary), "--output", str(tmp_path / "report")]) == 0
    assert (tmp_path / "report" / "report.html").is_file()
    assert "report.md" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["{}", "not json", None])
def test_the_command_line_says_what_is_wrong(tmp_path, capsys, text):
    summary = tmp_path / "summary.json"
    if text is not None:
        summary.write_text(text)
    assert main(["--summary", str(summary), "--output", str(tmp_path / "report")]) == 2
    assert str(summary) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "not recorded"),
        ({"machine_hours": 1.5}, "1.50 hours, from the start to the last token of every load"),
        (
            {"machine_hours": 2.0, "study_cost_usd": 3.722, "imported_from": "a table"},
            "2 hours, as the import file says: 3.72 USD at the study's price",
        ),
    ],
)
def test_the_time_and_cost_of_the_study_are_said(changes, said):
    text = render_markdown(build_report(sample_summary(**changes)))
    assert f"Machine time: {said}" in text.replace("**", "")
    assert ("a table" in text) == ("imported_from" in changes)


def test_a_tie_says_beside_its_number_what_it_may_have_missed():
    raw = sample()
    told = {"repeats": 3, "detectable": 0.132, "repeats_needed": 9}
    raw["comparisons"] = [one | {"outcome": "tie"} | told for one in raw["comparisons"]]
    sentence = "with 3 repetitions a difference under 14 % can go unseen; 9 would show one of 10 %"
    assert sentence in render_markdown(build_report(Summary.model_validate(raw)))
    raw["comparisons"] = [one | {"outcome": "better"} for one in raw["comparisons"]]
    assert sentence not in render_markdown(build_report(Summary.model_validate(raw)))
