"""Puts texts into pages of five sites' templates: html_templates.py DOCUMENTS FOLDER.

200 pages: of each site 16 short ones (40 to 90 words), 16 of 150 to 350 and 6 of 600 to 1,200; ten contents are told on the next site too.
The folder gets html_pages.jsonl, html_content.jsonl (the same without markup) and html_truth.json (the ten pairs).
"""

import html
import json
import os
import random
import re
import sys

RANDOM = random.Random(5)
LENGTHS = [(40, 90)] * 16 + [(150, 350)] * 16 + [(600, 1200)] * 8
TOPICS = (
    "Home;Products;Solutions for teams;Customer stories;Pricing and plans;Documentation;Developer API;Community forum;"
    "Support centre;About our company;Careers at Acme;Press room;Contact sales;Sign in;Create a free account"
).split(";")
NOTICE = (
    '<div class="cookie-banner" role="dialog"><p>We use cookies and similar technologies to give you the best experience, to personalise '
    "content and ads, to provide social media features and to analyse our traffic. We also share information about your use of our site with "
    "our social media, advertising and analytics partners.</p><button>Accept all</button><a href=\"#\">Manage preferences</a></div>"
)
FOOT = (
    "Copyright 2026 Acme Media Group. All rights reserved. Reproduction in whole or in part without permission is prohibited. Terms of use. "
    "Privacy policy. Cookie settings. Accessibility statement. Do not sell my personal information."
)
SCRIPT = "<script>window.__DATA__=" + json.dumps({"a": ['<div class="x">junk</div>'] * 400}) + "</script>"


def shingles(words):
    words = re.findall(r"\w+", " ".join(words).lower())
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


def texts(path):
    """190 texts that have next to nothing in common, as words."""
    documents = [json.loads(line) for line in open(path)]
    RANDOM.shuffle(documents)
    pool = []
    for document in documents:
        if document["id"].split("/")[0] == "exercism-c":
            continue
        text = re.sub(r"https?://\S+", " ", re.sub(r"[`*_#>\[\](){}|]", " ", document["text"]))
        words = text.split()
        own = shingles(words)
        if len(own) >= 60 and all(len(own & other) / len(own | other) <= 0.15 for other, _ in pool):
            pool.append((own, words))
        if len(pool) >= 190:
            break
    return [words for _, words in pool]


def cells(words, size):
    return [html.escape(" ".join(words[i : i + size])) for i in range(0, len(words), size)]


def body(words):
    out, at = [], 0
    while at < len(words):
        count = RANDOM.randrange(25, 70)
        part, at, kind = words[at : at + count], at + count, RANDOM.random()
        whole = html.escape(" ".join(part))
        if kind < 0.6:
            out.append(f"<p>{whole}</p>")
        elif kind < 0.75:
            out.append("<ul>" + "".join(f"<li>{cell}</li>" for cell in cells(part, 9)) + "</ul>")
        elif kind < 0.85:
            rows = "".join(
                f"<td>{cell}</td>" + ("</tr><tr>" if 6 * n % 12 else "") for n, cell in enumerate(cells(part, 6))
            )
            out.append(f"<table><tr>{rows}</tr></table>")
        elif kind < 0.93:
            out.append(f"<pre><code>{whole}</code></pre>")
        else:
            out.append(f"<blockquote>{whole}</blockquote>")
    return "\n".join(out)


def links(count, seed):
    kinds = ["guide", "overview", "news", "archive", "tips", "report"]
    item = lambda i: f"{random.Random(seed * 100 + i).choice(TOPICS)} {random.Random(seed * 77 + i).choice(kinds)} {i}"
    return "".join(f'<li><a href="/{i}">{item(i)}</a></li>' for i in range(count))


def in_main(text, title):
    return (
        f"<!DOCTYPE html><html lang=en><head><title>{title} | Acme</title><style>.a{{b:c}}</style>{SCRIPT}</head><body><header><a href=/>Acme</a>"
        f"<nav><ul>{links(40, 1)}</ul></nav></header><main><article><h1>{title}</h1>{text}</article></main><aside><h3>Most read</h3>"
        f"<ul>{links(15, 2)}</ul></aside><footer><p>{FOOT}</p></footer>{NOTICE}</body></html>"
    )


def in_classes(text, title):
    return (
        f'<!DOCTYPE html><html><head><title>{title}</title></head><body><div id="top" class="navbar"><div class="container">'
        f'<ul class="nav navbar-nav">{links(40, 3)}</ul></div></div><div class="container"><div class="row"><div class="col-md-8 content">'
        f'<h1>{title}</h1>{text}</div><div class="col-md-4 sidebar"><h3>Related articles</h3><ul>{links(20, 4)}</ul></div></div></div>'
        f'<div id="footer"><p>{FOOT}</p><ul>{links(12, 5)}</ul></div>{NOTICE}</body></html>'
    )


def blog(text, title):
    return (
        f'<!DOCTYPE html><html><head><title>{title} - Blog</title></head><body class="single"><div id="page"><header id="masthead">'
        f'<div class="site-branding">My blog about everything</div></header><div id="content"><div id="primary"><article class="post">'
        f'<header class="entry-header"><h1>{title}</h1><span class="posted-on">Posted on <time>12 May 2024</time> by admin</span></header>'
        f'<div class="entry-content">{text}</div><footer class="entry-footer">Posted in News, tagged guide, tips</footer></article>'
        '<div id="comments"><h2>Leave a reply</h2><form><p>Your email address will not be published. Required fields are marked with a star.</p>'
        "<label>Comment</label><textarea></textarea><label>Name</label><input><p>Save my name, email, and website in this browser for the next "
        f'time I comment.</p></form></div></div><div id="secondary" class="widget-area"><section class="widget"><h2>Recent posts</h2>'
        f'<ul>{links(10, 6)}</ul></section><section class="widget"><h2>Archives</h2><ul>{links(24, 7)}</ul></section></div></div>'
        f'<footer id="colophon">{FOOT}</footer></div></body></html>'
    )


def shop(text, title):
    menu = "".join(f"<a href=/c{i}>{topic}</a>" for i, topic in enumerate(TOPICS * 2))
    return (
        f'<!doctype html><html><head><title>{title} - Shop</title>{SCRIPT}</head><body><div class="header"><div class="menu">{menu}</div></div>'
        f'<div class="product"><h1>{title}</h1><div class="price">EUR 49.90 incl. VAT plus shipping</div><div class="desc">{text}</div>'
        '<div class="delivery"><p>Order within the next three hours and receive your parcel tomorrow. Free returns within thirty days of delivery. '
        'Secure payment by card, PayPal or on account.</p></div><div class="reviews"><h3>Customer reviews</h3><p>There are no reviews yet. Be the '
        "first to review this product and help other customers with their choice.</p></div></div><div class=\"related\"><h3>Customers who bought "
        f'this item also bought</h3><ul>{links(16, 8)}</ul></div><div class="newsletter"><p>Subscribe to our newsletter and get ten percent off your '
        f'first order. You can unsubscribe at any time using the link in the mail.</p></div><div class="foot">{FOOT}</div>{NOTICE}</body></html>'
    )


def in_table(text, title):
    menu = "".join(f"<a href=/{i}>{topic}</a><br>" for i, topic in enumerate(TOPICS))
    return (
        f"<html><head><title>{title}</title></head><body bgcolor=white><table width=100%><tr><td valign=top width=150><font size=2>{menu}</font>"
        f"<td><h1>{title}</h1>{text}<p><font size=1>Last updated 12 May 2024. This page is maintained by the webmaster. Please send comments and "
        "corrections by electronic mail. Best viewed with any browser. You are visitor number 12345.</font></table><hr>"
        f"<center>{FOOT}</center></body></html>"
    )


SITES = [in_main, in_classes, blog, shop, in_table]


def main(documents, folder):
    pool, rows, again, drawn = texts(documents), [], [], 0
    for site in range(5):
        for number in range(38):
            words = pool[drawn % len(pool)]
            drawn += 1
            need = RANDOM.randrange(*LENGTHS[number])
            while len(words) < need:
                words = words + pool[(drawn * 7 + len(words)) % len(pool)]
            rows.append((f"t{site + 1}-{number:02d}", site, words[:need]))
            if number in (20, 35):
                again.append(rows[-1])
    truth = []
    for number, (name, site, words) in enumerate(again):
        other = (site + 1) % 5
        rows.append((f"t{other + 1}-again{number}", other, words))
        truth.append(sorted((name, rows[-1][0])))
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/html_pages.jsonl", "w") as pages, open(f"{folder}/html_content.jsonl", "w") as contents:
        for name, site, words in rows:
            title = " ".join(words[:6])
            print(json.dumps({"id": name, "text": SITES[site](body(words), html.escape(title))}), file=pages)
            print(json.dumps({"id": name, "text": f"{title} {' '.join(words)}"}), file=contents)
    with open(f"{folder}/html_truth.json", "w") as out:
        json.dump(sorted(truth), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
