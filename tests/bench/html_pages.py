"""Wraps the texts of a feed into pages of twenty sites, in four kinds of markup: html_pages.py FEED > PAGES.

Every site has its own navigation, side column, footer and scripts. Which site and kind a text gets depends on its id, so that
near-duplicates mostly stand on different sites, and each site has many texts that are no near-duplicates.
"""

import hashlib
import html
import json
import random
import sys


def number(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def site(n):
    rng = random.Random(n)
    syllables = "ba co di fe gu ha ji ka lo mu ne po ri sa tu va we xi yo za".split()
    words = lambda many: " ".join("".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(many))
    return {
        "name": words(2).title(),
        "menu": "".join(f'<li><a href="/{i}">{words(2)}</a></li>\n' for i in range(60)),
        "side": "".join(f'<div class="widget"><h3>{words(3)}</h3><p>{words(25)}</p></div>\n' for _ in range(6)),
        "foot": words(80),
        "code": "<script>" + "".join(f"track('<div>{words(3)}</div>');\n" for _ in range(40)) + "</script>",
    }


def body(text, paragraph):
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return "\n".join(paragraph.format(html.escape(block).replace("\n", "<br>\n")) for block in blocks)


def elements(s, text):
    return f"""<header><h1>{s["name"]}</h1></header><nav><ul>{s["menu"]}</ul></nav><main><article>
{body(text, "<p>{}</p>")}</article></main><aside>{s["side"]}</aside><footer>{s["foot"]}</footer>"""


def divs(s, text):
    return f"""<div id="header"><div class="menu"><ul>{s["menu"]}</ul></div></div><div id="content" class="post">
{body(text, "<p>{}</p>")}</div><div id="sidebar" class="sidebar">{s["side"]}</div><div id="footer" class="footer">{s["foot"]}</div>"""


def table(s, text):
    return f"""<table width=100%><tr><td colspan=2><font size=5>{s["name"]}</font><tr><td valign=top><nav><ul>{s["menu"]}</ul></td><td>
{body(text, "<p><font face=serif>{}</font>")}</td></tr></table><center><footer>{s["foot"]}</footer></center>"""


def blog(s, text):
    return f"""<nav><ul>{s["menu"]}</ul></nav><div class="wrap"><article class="post"><header class="entry"></header>
<div class="entry-content">{body(text, "<div>{}</div>")}</div></article><aside>{s["side"]}</aside></div><footer>{s["foot"]}</footer>"""


KINDS = [elements, divs, table, blog]
SITES = [site(n) for n in range(20)]

for line in open(sys.argv[1]):
    record = json.loads(line)
    n = number(record["id"])
    s, kind = SITES[n % 20], KINDS[n // 20 % 4]
    if len(sys.argv) > 2 and KINDS.index(kind) != int(sys.argv[2]):
        continue
    if "text" in record:
        head = f'<!doctype html>\n<html><head><title>{s["name"]}</title>{s["code"]}</head>\n<body>'
        record["text"] = f'{head}{kind(s, record["text"])}{s["code"]}</body></html>\n'
    print(json.dumps(record, ensure_ascii=False))
