"""Text of logs and users cannot break a report."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglsweep.report.document import (
    Block,
    Bullets,
    Code,
    Heading,
    Link,
    Listing,
    Paragraph,
    Strong,
    Table,
    one_line,
)
from sglsweep.report.findings import BEGIN, END
from sglsweep.report.html import block_html
from sglsweep.report.markdown import to_markdown

HOSTILE = st.text(max_size=30) | st.lists(
    st.sampled_from(
        [
            "`",
            "``",
            "|",
            "\\",
            "<b>",
            "<!--",
            "-->",
            "\n",
            "\r",
            "\x1b[31m",
            "\x00",
            "*",
            "_",
            "#",
            "- ",
            "](x)",
            "[",
            "~~",
            "&lt;",
            END,
            BEGIN,
            "\u2028",
            "\ud800",
            "```",
            "1. ",
        ]
    ),
    max_size=8,
).map("".join)


def cells(row: str) -> int:
    """Count the cells of a table row as GitHub does: bars after an even number of backslashes."""
    return sum(len(run) % 2 == 0 for run in re.findall(r"(\\*)\|", row)) - 1


@given(HOSTILE, HOSTILE)
def test_a_table_keeps_its_columns(text: str, code: str) -> None:
    table = Table(("a", "b", "c"), (((text,), (Code(code),), (Strong(text),)),))
    lines = to_markdown([table]).rstrip("\n").split("\n")
    assert [cells(line) for line in lines] == [3, 3, 3]


@given(HOSTILE)
def test_every_block_stays_one_block(text: str) -> None:
    blocks: list[Block] = [
        Heading(2, (text,)),
        Paragraph((text, Code(text))),
        Bullets(((text,), (Code(text),))),
    ]
    parts = to_markdown(blocks).rstrip("\n").split("\n\n")
    assert len(parts) == 3
    assert len(parts[2].split("\n")) == 2


@given(HOSTILE)
def test_no_text_can_end_the_tool_s_part_of_the_file(text: str) -> None:
    lines = [text, END, f"{BEGIN}\n{END}"]
    blocks: list[Block] = [Listing("\n".join(lines)), Paragraph((text,)), Bullets(((END,),))]
    written = to_markdown(blocks).split("\n")
    assert END not in written
    assert BEGIN not in written


@given(HOSTILE)
def test_a_listing_is_closed_by_its_own_fence_alone(text: str) -> None:
    lines = to_markdown([Listing(text)]).rstrip("\n").split("\n")
    fence = lines[-1]
    assert set(fence) == {"`"}
    assert not any(line.startswith(fence) for line in lines[1:-1])


@given(HOSTILE)
def test_a_code_span_shows_its_text_and_ends_where_it_should(text: str) -> None:
    written = to_markdown([Paragraph((Code(text),))]).rstrip("\n")
    fence = re.match(r"`*", written)
    assert fence is not None
    if fence.group():
        assert written.endswith(fence.group())
        inner = written[len(fence.group()) : -len(fence.group())]
        assert not re.search(rf"(?<!`){fence.group()}(?!`)", inner)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@given(HOSTILE)
def test_no_text_becomes_a_tag(text: str) -> None:
    tags = Tags()
    tags.feed(block_html(Bullets(((text, Code(text), Strong(text)),))))
    tags.close()
    assert tags.open == []
    assert tags.seen == ["ul", "li", "code", "strong"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//evil", "file:///x"])
def test_only_web_addresses_become_links(url: str) -> None:
    assert "href" not in block_html(Paragraph((Link("see", url),)))


def test_ansi_and_newlines_are_gone_and_the_middle_is_cut() -> None:
    assert one_line("\x1b[1;31mred\x1b[0m\r\nnext\x07") == "red next"
    cut = one_line("a" * 300 + "END", limit=100)
    assert len(cut) <= 100
    assert cut.endswith("END")


def test_flags_and_paths_stay_readable_in_the_raw_file() -> None:
    text = "modelopt_fp4 at /opt/a-b, 3 < 4, a & b (x) #5"
    assert to_markdown([Paragraph((text,))]) == f"{text}\n"
