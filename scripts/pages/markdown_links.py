# SPDX-License-Identifier: Apache-2.0
"""Reads pages in Markdown: their prose, links and anchors. scripts/check_docs and scripts/site look at them."""
import re

FENCE = re.compile(r"\s*(```|~~~)")
CODE = re.compile(r"(`+)(.+?)\1")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^\s)>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
AUTOLINK = re.compile(r"<(https?:[^>]*)>")
HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def prose(text):
    """The lines of a page with their numbers, without blocks of code."""
    fence = None
    for number, line in enumerate(text.splitlines(), start=1):
        if match := FENCE.match(line):
            fence = None if fence == match[1] else fence or match[1]
        elif fence is None:
            yield number, line


def without_code(line):
    return CODE.sub("", line)


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    found = {}
    for _, line in prose(text):
        if match := HEADING.match(line):
            name = slug(match[2])
            count = found.get(name, -1) + 1
            found[name] = count
            if count:
                found[f"{name}-{count}"] = 0
    return set(found)


def links(text):
    for number, line in prose(text):
        for pattern in (LINK, AUTOLINK):
            for match in pattern.finditer(without_code(line)):
                yield number, match[1]
        if match := DEFINITION.match(without_code(line)):
            yield number, match[1]


def anchor(heading, _separator):
    """slug() as mkdocs calls it."""
    return slug(heading)
