"""The pipeline of Scrapy, with Scrapy itself, a site and a run.

Bug classes: an item that is lost, or of another page's answer; a repeat that is kept because its id sorts
first; a crawl that fails while the run restarts.
"""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import native_text, run

pytest.importorskip("scrapy")

PAGES = 60
# Pages of one text but for a word.
COPIES = 3
TOKEN = "0123456789abcdef"
BODY_BYTES = 4_000

SPIDER = """
import scrapy

class Page(scrapy.Item):
    url, text, lang, dupflow = scrapy.Field(), scrapy.Field(), scrapy.Field(), scrapy.Field()

class Site(scrapy.Spider):
    name = "site"
    custom_settings = {
        "ITEM_PIPELINES": {"dupflow.scrapy.RepeatsPipeline": 300},
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        "DUPFLOW_FIELDS": ["lang"],
    }

    def __init__(self, site):
        self.start_urls = [site]

    def parse(self, response):
        yield Page(url=response.url, text=response.css("p::text").get(), lang="en")
        yield from response.follow_all(css="a")
"""


class Site(BaseHTTPRequestHandler):
    """Pages, of which the last is served once this is allowed."""

    last = threading.Event()

    def do_GET(self):
        if self.path == "/":
            # Ids descend: what arrives first does not sort first.
            links = [f'<a href="/{PAGES + n - 1:03}">page</a>' for n in reversed(range(PAGES))]
            links = " ".join([*links, '<a href="/large">page</a>'])
            body = f"<html><body>{links}</body></html>"
        elif self.path == "/large":
            body = f"<html><body><p>{'more than the run takes ' * BODY_BYTES}</p></body></html>"
        else:
            number = int(self.path[1:]) - PAGES + 1
            assert number > 0 or Site.last.wait(60)
            body = f"<html><body><p>{native_text(number // COPIES, edit=number % COPIES)}</p></body></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Site.last.set()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def crawl(folder, site, port, out, *settings):
    (folder / "spider.py").write_text(SPIDER)
    options = [f"DUPFLOW_URL=http://127.0.0.1:{port}", *settings]
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-a", f"site={site}", "-O", out]
    command += [word for option in options for word in ("-s", option)]
    return begin(command, folder, folder / f"{out}.log")


def begin(command, folder, log):
    """A process whose messages are in a file."""
    with log.open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stderr=said)
    process.said = log.read_text
    return process


def start(program, folder, port):
    (folder / "run.toml").write_text(
        '[source]\nkind = "http"\njournal = "posted.jsonl"\nfields = ["lang"]\n[sink]\npath = "out.jsonl"\n'
        f'[state]\npath = "state"\n[monitor]\nlisten = "127.0.0.1:{port}"\ntoken = "{TOKEN}"\nbody_bytes = {BODY_BYTES}\n'
    )
    return begin([program, "run", "-c", "run.toml"], folder, folder / "run.log")


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def rows(path):
    return json.loads(path.read_text())


def ended(crawling):
    assert crawling.wait(120) == 0, crawling.said()
    return crawling.said()


def test_of_each_text_the_page_that_arrived_first_is_kept(program, tmp_path, site):
    port = free_port()
    # The run begins while pages arrive, is killed, refuses a body as it restarts, and begins again.
    Site.last.clear()
    crawling = crawl(tmp_path, site, port, "kept.json", "DUPFLOW_TOKEN=" + TOKEN)
    wait_until(lambda: "it is sent again" in crawling.said())
    running = start(program, tmp_path, port)
    journal = tmp_path / "posted.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count("\n") > 1)
    running.kill()
    running.wait()
    with socket.create_server(("127.0.0.1", port)) as restarting:
        restarting.settimeout(60)
        Site.last.set()
        restarting.accept()[0].close()
    running = start(program, tmp_path, port)
    said = ended(crawling)
    kept = rows(tmp_path / "kept.json")
    texts = [row["text"] for row in kept if row["text"]]
    assert len(texts) == PAGES // COPIES, said
    assert f"'dupflow/documents': {PAGES + 1}" in said and "'dupflow/bad': 1" in said
    assert f"'dupflow/repeats': {PAGES - PAGES // COPIES}" in said and "'dupflow/retries': " in said
    # Bodies of several pages are too large, and one page alone.
    assert said.count("more than 4000 bytes (monitor.body_bytes)") == 1, said
    # The page of links has no text: it is said, and passed on.
    assert len(kept) == len(texts) + 1 and "is no document, and is passed on: missing_text" in said
    arrived = {row["id"]: row.get("ts") for row in map(json.loads, journal.read_text().split("\n")[1:-1])}
    clusters = {}
    for page in arrived:
        number = page.rsplit("/", 1)[1]
        if number:
            clusters.setdefault((int(number) - PAGES + 1) // COPIES, []).append(page)
    first = {min(pages, key=arrived.get) for pages in clusters.values()}
    assert {row["url"] for row in kept if row["text"]} == first

    # Pages that arrive again are what they were.
    again = ended(crawl(tmp_path, site, port, "again.json", "DUPFLOW_TOKEN=" + TOKEN))
    assert {row["url"] for row in rows(tmp_path / "again.json") if row["text"]} == first, again
    said = ended(crawl(tmp_path, site, port, "marked.json", "DUPFLOW_TOKEN=" + TOKEN, "DUPFLOW_REPEATS=mark"))
    marked = [row["dupflow"] for row in rows(tmp_path / "marked.json") if row["text"]]
    assert len(marked) == PAGES and all(answer["pairs"] == COPIES - 1 for answer in marked), said
    running.terminate()
    assert running.wait(60) == 0, running.said()
    pairs = run(program, "replay", "--emit", "pairs", "--format", "jsonl", journal).count(b"\n")
    assert pairs == PAGES // COPIES * (COPIES * (COPIES - 1) // 2)


def test_what_cannot_be_posted_is_said(program, tmp_path, site):
    port = free_port()
    running = start(program, tmp_path, port)
    said = ended(crawl(tmp_path, site, port, "none.json", "DUPFLOW_TOKEN=wrong"))
    assert "the crawl is closed: " in said and "/documents: 401" in said and "dupflow_refused" in said, said
    running.kill()
    running.wait()
    assert ": it is sent again for 1.5 s" in ended(crawl(tmp_path, site, port, "no.json", "DUPFLOW_SECONDS=1.5"))
    # A forced stop waits for no run.
    stopped = crawl(tmp_path, site, port, "no.json")
    for log in ("it is sent again for 300 s", "Send again to force"):
        wait_until(lambda log=log: log in stopped.said())
        stopped.send_signal(signal.SIGINT)
    stopped.wait(60)
    refused = crawl(tmp_path, site, port, "no.json", "DUPFLOW_URL=127.0.0.1:9600", "DUPFLOW_REPEATS=keep", "DUPFLOW_FIELDS=op")
    assert refused.wait(60) == 1, refused.said()
    for why in ("DUPFLOW_URL: found '127.0.0.1:9600'", """DUPFLOW_REPEATS: found 'keep', expected "drop" or "mark\"""", "'op'"):
        assert why in refused.said()
