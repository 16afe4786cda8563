"""From matplotlib's SVG to one that belongs on a page: named, described, in the page's colours."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from xml.etree import ElementTree

from scripts.lib.report import plot

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"

LIGHT_SERIES = (
    "#4b5563", "#0067b8", "#c2410c", "#00795a", "#b0307f", "#8a6100", "#0b7fa5", "#6d3fc0",
)  # fmt: skip
LIGHT = {
    plot.INK: "#1b1f24",
    plot.FAINT: "#5b6470",
    plot.GRID: "#e4e7eb",
    plot.LIMIT: "#b42318",
    plot.INVALID: "#9aa2ad",
    plot.PAPER: "#ffffff",
    plot.BAND: "#eef1f5",
    **dict(zip(plot.SERIES, LIGHT_SERIES, strict=True)),
}
"""Colours of a figure that stands alone in a file, on white."""

PROPERTIES = {
    plot.INK: "var(--ink)",
    plot.FAINT: "var(--faint)",
    plot.GRID: "var(--line)",
    plot.LIMIT: "var(--bad)",
    plot.INVALID: "var(--invalid)",
    plot.PAPER: "var(--paper)",
    plot.BAND: "var(--band)",
    **{colour: f"var(--series-{index})" for index, colour in enumerate(plot.SERIES)},
}
"""The page's custom properties, which follow its light or dark scheme."""

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def inline(
    raw: str,
    name: str,
    title: str,
    description: str,
    tips: Mapping[str, str],
    heading: str | None = None,
) -> str:
    """Return an SVG element for a page: its ids start with ``name``, its colours are the page's.

    ``heading``: what stands above the axes instead of the title; the legend is cut off, too.
    """
    if heading is not None:
        raw = _without_legend(raw, heading)
    root = _prepared(raw, name, title, description, tips)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("class", "chart")
    text = _coloured(ElementTree.tostring(root, encoding="unicode"), PROPERTIES)
    return re.sub(r"font-family: [^;\"]*", "font-family: inherit", text)


def standalone(raw: str, name: str, title: str, description: str, tips: Mapping[str, str]) -> str:
    """Return a whole SVG file on white, readable wherever it is shown."""
    root = _prepared(raw, name, title, description, tips)
    _, _, width, height = root.attrib["viewBox"].split()
    root.set("width", width)
    root.set("height", height)
    paper = ElementTree.Element(
        f"{{{SVG}}}rect", {"width": "100%", "height": "100%", "fill": LIGHT[plot.PAPER]}
    )
    root.insert(2, paper)
    text = _coloured(ElementTree.tostring(root, encoding="unicode"), LIGHT)
    return re.sub(r"font-family: [^;\"]*", f"font-family: {FONTS}", text) + "\n"


def render(draw: Callable[[], str]) -> str:
    """Call ``draw`` without matplotlib's warnings about glyphs that the reader's fonts have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        return draw()


def _prepared(
    raw: str, name: str, title: str, description: str, tips: Mapping[str, str]
) -> ElementTree.Element:
    root = ElementTree.fromstring(raw)  # noqa: S314 - matplotlib's own output
    _drop(root, ("metadata", "style"))
    for element in list(root.iter()):
        tip = tips.get(element.get("id", ""))
        if tip:
            child = ElementTree.Element(f"{{{SVG}}}title")
            child.text = tip
            element.insert(0, child)
    _rename_ids(root, name)
    _round_coordinates(root)
    root.attrib.update(
        {
            "role": "img",
            "aria-label": title,
            "aria-describedby": f"{name}-desc",
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
        }
    )
    for index, (tag, text) in enumerate((("title", title), ("desc", description))):
        child = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        child.text = text
        root.insert(index, child)
    return root


def _without_legend(raw: str, heading: str) -> str:
    root = ElementTree.fromstring(raw)  # noqa: S314 - matplotlib's own output
    for parent in list(root.iter()):
        for child in list(parent):
            if child.get("id") == plot.LEGEND:
                parent.remove(child)
            elif child.get("id") == plot.HEADING:
                for text in child.iter(f"{{{SVG}}}text"):
                    text.text = heading
    root.set("viewBox", f"0 0 {plot.WIDTH} {plot.HEIGHT}")
    return ElementTree.tostring(root, encoding="unicode")


def _drop(root: ElementTree.Element, names: tuple[str, ...]) -> None:
    """Remove elements that would leak into the page (style) or say nothing (metadata)."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in names:
                parent.remove(child)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{SVG}}}defs" and not len(child):
                parent.remove(child)


def _rename_ids(root: ElementTree.Element, name: str) -> None:
    """Keep only ids that something refers to, and make them unique on a page."""
    text = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    for element in root.iter():
        identifier = element.attrib.pop("id", None)
        if identifier in used:
            element.set("id", f"{name}-{identifier}")
        target = element.attrib.pop(f"{{{XLINK}}}href", None)
        if target:
            element.set("href", f"#{name}-{target[1:]}")
        clip = element.get("clip-path")
        if clip:
            element.set("clip-path", clip.replace("url(#", f"url(#{name}-"))


def _round_coordinates(root: ElementTree.Element) -> None:
    """Two decimals of a pixel are enough, and half the bytes."""
    for element in root.iter():
        for key in ("d", "x", "y", "transform"):
            value = element.get(key)
            if value:
                short = re.sub(
                    r"-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value
                )
                element.set(key, " ".join(short.split()))
        if re.fullmatch(r"rotate\(-0 .*\)", element.get("transform", "")):
            del element.attrib["transform"]


def _coloured(text: str, colours: Mapping[str, str]) -> str:
    return re.sub(r"#0[12]01\d\d\b", lambda match: colours.get(match[0], match[0]), text)
