"""What a report is made of: typed blocks that the HTML and the Markdown template both print.

Python decides every word and number here; the templates only know how a block looks. A
``Tone`` colours what a block says; the words never depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

COLOURS = 8
Tone = Literal["plain", "good", "warn", "bad", "muted"]


@dataclass(frozen=True)
class Link:
    """A raw file, as a path relative to the study's folder."""

    path: str

    @property
    def short(self) -> str:
        """The last two parts of the path, which a reader needs to tell files apart."""
        return "/".join(self.path.split("/")[-2:])


@dataclass(frozen=True)
class Tag:
    """A variant's name, always with what really ran."""

    label: str
    stamp: str
    tone: Tone
    series: int
    symbol: str
    is_baseline: bool

    @property
    def colour(self) -> int:
        """Which of the page's series colours it has; symbols tell apart those that share one."""
        return self.series % COLOURS

    @property
    def text(self) -> str:
        """The name and its stamp as one text."""
        return f"{self.label} \N{MIDDLE DOT} {self.stamp}"


@dataclass(frozen=True)
class Chip:
    """A short verdict: pass, fail, degraded, ..."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Cell:
    """One cell of a table: what counts large, the rest small below it."""

    text: str = ""
    notes: Sequence[str] = ()
    chips: Sequence[Chip] = ()
    tag: Tag | None = None
    sources: Sequence[Link] = ()
    tone: Tone = "plain"
    code: bool = False


@dataclass(frozen=True)
class Column:
    """A column's heading."""

    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    """A table; on a narrow screen each row becomes a card.

    ``even``: columns of equal width. ``compact``: cells so short that a card has several a line.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    empty: str = "Nothing to show."
    even: bool = False
    compact: bool = False
    title: str = ""
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = "plain"
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: Sequence[str]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Fact:
    """A name and what there is to say about it."""

    name: str
    text: str
    code: bool = False
    sources: Sequence[Link] = ()


@dataclass(frozen=True)
class Facts:
    """Names with their values."""

    items: Sequence[Fact]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Code:
    """Text to copy: a command, an expression, a log line."""

    text: str
    caption: str = ""
    kind: Literal["code"] = "code"


@dataclass(frozen=True)
class Callout:
    """A box that must not be missed."""

    title: str
    tone: Tone
    blocks: Sequence[Block]
    tag: Tag | None = None
    kind: Literal["callout"] = "callout"


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away until somebody asks."""

    summary: str
    blocks: Sequence[Block]
    tag: Tag | None = None
    kind: Literal["details"] = "details"


@dataclass(frozen=True)
class Example:
    """One probe item as the baseline and a variant answered it."""

    title: str
    prompt: str
    baseline: str
    variant: str
    tag: Tag
    baseline_tag: Tag
    baseline_reason: str = ""
    """Why the answer was graded as it was; "": not told."""
    variant_reason: str = ""
    kind: Literal["example"] = "example"


@dataclass(frozen=True)
class Figure:
    """A figure: inline SVG for the page, a file for everything else."""

    name: str
    title: str
    description: str
    inline_svg: str
    file_svg: str

    @property
    def file(self) -> str:
        """The figure's path inside the report's folder."""
        return f"figures/{self.name}.svg"


@dataclass(frozen=True)
class Figures:
    """Figures side by side with one legend."""

    items: Sequence[Figure]
    legend: Sequence[Tag] = ()
    note: str = ""
    kind: Literal["figures"] = "figures"


Block = Table | Heading | Text | Bullets | Facts | Code | Callout | Details | Example | Figures


@dataclass(frozen=True)
class Section:
    """One of the report's parts."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True)
class KeyNumber:
    """One number of the answer, beside the baseline's."""

    title: str
    value: str
    change: str = ""
    baseline: str = ""
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class Answer:
    """What stands on top: the decision, why, its numbers, and when to roll back."""

    outcome: str
    tone: Tone
    headline: str
    tag: Tag | None
    why: Sequence[str]
    numbers_title: str
    numbers: Sequence[KeyNumber]
    glance: Table
    rollback: Callout


@dataclass(frozen=True)
class Report:
    """The whole report."""

    title: str
    study: str
    subtitle: str
    answer: Answer
    sections: Sequence[Section]
    footer: Sequence[str]
    figures: Sequence[Figure] = field(default=())
    files: frozenset[str] = frozenset()
