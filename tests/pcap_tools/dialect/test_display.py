"""A dialect in a notebook: its messages and fields, and nothing of a hostile file as markup."""

from __future__ import annotations

import re

from pcap_tools import load_dialect
from pcap_tools.dialect import parse_dialect

HOSTILE = """
name = "evil"
title = "<script>alert(1)</script> \\u202e"
ports = { "<b>" = "7000-7009" }
[fields]
type = { kind = "text", until = "<hr>" }
rest = { kind = "bytes" }
[messages.SAY]
when = { type = "<i>" }
layout = ["type", "rest"]
means = "other"
"""


def rows(html: str) -> list[list[str]]:
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]


def test_a_dialect_shows_its_messages_as_they_stand_on_the_wire() -> None:
    html = load_dialect("colon")._repr_html_()
    assert "<b>colon</b> Type byte, retain byte, topic and payload split by a colon" in html
    assert "<b>UDP ports:</b> broker 50000; client 50000" in html
    publish = "type = 1 (1 B) · retain (1 B) · topic (up to &#x27;:&#x27;) · payload (the rest)"
    assert rows(html)[:2] == [["message", "means", "fields in the order of the wire"], ["PUBLISH", "publish", publish]]
    assert [row[0] for row in rows(html)[1:]] == ["PUBLISH", "PUBACK", "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK"]


def test_forms_are_told_apart_where_there_are_several() -> None:
    header, *body = rows(load_dialect("portdigits")._repr_html_())
    assert header[0] == "form"
    assert {row[0] for row in body} == {form.name for form in load_dialect("portdigits").forms}


def test_a_hostile_file_stays_text() -> None:
    html = parse_dialect(HOSTILE, "evil.toml")._repr_html_()
    assert set(re.findall(r"<([a-z]+)", html)) <= {"table", "thead", "tbody", "tr", "th", "td", "p", "b"}
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\xe2\\x80\\xae" in html
    assert "&lt;b&gt; 7000-7009" in html
    assert "type = &lt;i&gt; (up to &#x27;&lt;hr&gt;&#x27;) · rest (the rest)" in html
