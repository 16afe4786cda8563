"""Print a report as HTML and as Markdown; templates hold no arithmetic."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from scripts.lib.analysis.summary import Summary
from scripts.lib.base.files import write_text
from scripts.lib.report.blocks import Report
from scripts.lib.report.view import build_report

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
UP = "../"
"""From the report's folder to the study's."""

_MARKDOWN = re.compile(r"([\\`*\[\]|~$]|\b_|_\b|(?<!\w)_|_(?!\w))")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(text: str) -> str:
    """Return text without control characters; those that turn the reading direction are shown."""
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    return _BIDI.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def render_html(report: Report) -> str:
    """Return the whole page, which needs nothing but itself."""
    environment = _environment()
    environment.filters.update(href=href, prose=prose_html)
    environment.finalize = _plain_value
    style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - our own
    return environment.get_template("report.html.j2").render(report=report, style=style)


def render_markdown(report: Report) -> str:
    """Return the report as Markdown; whatever is printed is escaped for it."""
    environment = _environment()
    environment.finalize = _markdown_value
    environment.filters.update(
        href=href, fenced=fenced, inline_code=inline_code, html=as_html, prose=prose_markdown
    )
    text = environment.get_template("report.md.j2").render(report=report)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def write_report(summary: Summary, folder: Path) -> list[Path]:
    """Write ``report.html``, ``report.md`` and ``figures/*.svg``; return what was written.

    Figures of an earlier report that this one does not have are removed.
    """
    report = build_report(summary)
    written = {folder / "report.html": render_html(report)}
    written[folder / "report.md"] = render_markdown(report)
    for figure in report.figures:
        written[folder / figure.file] = figure.file_svg
    for old in sorted((folder / "figures").glob("*.svg")):
        if old not in written:
            old.unlink()
    for path, text in written.items():
        write_text(path, text)
    return list(written)


def href(path: str) -> str:
    """Return a relative address for a raw file; never one of another host or scheme."""
    return UP + quote(path.lstrip("/"), safe="/")


def escape_markdown(text: str) -> Markup:
    """Return text that Markdown shows as it is, on one line."""
    flat = " ".join(plain(text).split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = _MARKDOWN.sub(r"\\\1", flat)
    flat = re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", flat)  # else a list
    flat = re.sub(r"^([-+]|#+)(?=\s|$)|^(?=[-=]+$)", r"\\\g<0>", flat)  # else a list or heading
    # An at sign or a bare address would become a mention or a link.
    flat = flat.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")
    return Markup(flat)  # noqa: S704 - escaped just now


def as_html(text: str) -> Markup:
    """Return text for a place in Markdown that is HTML, such as a summary."""
    return escape(plain(text))


def prose_html(text: str) -> Markup:
    """Return a sentence, its parts between back quotes as code."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:
        return escape(plain(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


def prose_markdown(text: str) -> Markup:
    """Return a sentence for Markdown, its parts between back quotes as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0 or not all(part.strip() for part in parts[1::2]):
        return escape_markdown(text)
    shown = [inline_code(part) if index % 2 else _spaced(part) for index, part in enumerate(parts)]
    return Markup("").join(shown)


def _spaced(part: str) -> Markup:
    """Return escaped text that keeps a space at either end."""
    before = " " if part[:1].isspace() else ""
    after = " " if part[-1:].isspace() and part.strip() else ""
    return Markup("{}{}{}").format(before, escape_markdown(part), after)


def fenced(text: str) -> Markup:
    """Return text as a fenced code block whose fence is longer than any inside."""
    runs = re.findall(r"`{3,}", text)
    fence = "`" * max([3, *[len(run) + 1 for run in runs]])
    body = plain(text).rstrip("\n")
    return Markup(f"{fence}text\n{body}\n{fence}")  # noqa: S704 - code is not interpreted


def inline_code(text: str) -> Markup:
    """Return text as inline code in a table's cell: back quotes and pipes survive."""
    flat = " ".join(plain(text).split()).replace("|", "\\|")
    runs = re.findall(r"`+", flat)
    tick = "`" * (max([0, *[len(run) for run in runs]]) + 1)
    pad = " " if runs else ""
    return Markup(f"{tick}{pad}{flat}{pad}{tick}")  # noqa: S704 - code is not interpreted


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _plain_value(value: object) -> object:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markdown_value(value: object) -> object:
    return (
        escape_markdown(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )
