"""A pipeline for Scrapy: each page is posted to a run, and dropped if it repeats an older one.

    # settings.py
    ITEM_PIPELINES = {"dupflow.scrapy.RepeatsPipeline": 300}
    DUPFLOW_URL = "http://127.0.0.1:9600"

The run has `source.kind = "http"`; docs/scrapy.md has all settings. While a body is on its way, further items
gather for the next one; an item waits for its answer, so that Scrapy crawls no faster than repeats are found.
Where the run is away, full, or restarts, the body is sent again.
"""

import json
import logging
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

__all__ = ["RepeatsPipeline"]

_logger = logging.getLogger("dupflow.scrapy")

# Most items of a body.
_TOGETHER = 500
# Seconds until an answer is given up; the run answers within 30.
_ANSWER = 60
# Seconds between two tries.
_PAUSE = 1.0


class RepeatsPipeline:
    """Posts items, and drops or marks those that repeat an older document."""

    def __init__(self, crawler: Any) -> None:
        settings = crawler.settings
        address = settings.get("DUPFLOW_URL") or ""
        self._repeats = settings.get("DUPFLOW_REPEATS", "drop")
        problems = []
        # Not `NotConfigured`, which would let all items pass.
        if urlsplit(address).scheme not in ("http", "https"):
            problems.append(f"DUPFLOW_URL: found {address!r}, expected an address, as http://127.0.0.1:9600")
        if self._repeats not in ("drop", "mark"):
            problems.append(f'DUPFLOW_REPEATS: found {self._repeats!r}, expected "drop" or "mark"')
        if problems:
            raise ValueError("; ".join(problems))
        self._fields = {
            "id": settings.get("DUPFLOW_ID", "url"),
            "text": settings.get("DUPFLOW_TEXT", "text"),
            **{name: name for name in settings.getlist("DUPFLOW_FIELDS")},
        }
        if settings.get("DUPFLOW_TS"):
            self._fields["ts"] = settings.get("DUPFLOW_TS")
        self._last_ts = 0.0
        self._stats = crawler.stats
        self._client = _Client(
            address.rstrip("/") + "/documents",
            settings.get("DUPFLOW_TOKEN"),
            settings.getfloat("DUPFLOW_SECONDS", 300.0),
        )
        # Lines that are to be posted, each with whom to tell.
        self._waiting: list[tuple[str, Deferred[Any]]] = []
        self._is_posting = False

    @classmethod
    def from_crawler(cls, crawler: Any) -> "RepeatsPipeline":
        return cls(crawler)

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        row = self._row(ItemAdapter(item))
        # Escaped, so that halves of characters reach the run, which knows what they mean.
        answer = await maybe_deferred_to_future(self._answer(json.dumps(row, default=str)))
        self._stats.inc_value("dupflow/documents")
        if "bad" in answer:
            self._stats.inc_value("dupflow/bad")
            _logger.warning("%s is no document, and is passed on: %s", row.get("id"), answer["bad"])
        elif "epoch" not in answer:
            self._stats.inc_value("dupflow/undecided")
        elif answer.get("copy"):
            self._stats.inc_value("dupflow/repeats")
            if self._repeats == "drop":
                raise DropItem(f"{row['id']} repeats {answer['of']}")
        if self._repeats == "mark":
            ItemAdapter(item)["dupflow"] = answer
        return item

    def close_spider(self, spider: Any = None) -> None:
        self._stats.inc_value("dupflow/retries", self._client.retries)

    def _row(self, item: ItemAdapter) -> dict[str, Any]:
        found = {key: item.get(name) for key, name in self._fields.items()}
        row = {key: value for key, value in found.items() if value is not None}
        if "ts" not in self._fields:
            # The oldest of a cluster is kept: no two have one time.
            row["ts"] = self._last_ts = max(time.time(), self._last_ts + 1e-6)
        return row

    def _answer(self, line: str) -> "Deferred[Any]":
        answer: Deferred[Any] = Deferred()
        self._waiting.append((line, answer))
        if not self._is_posting:
            self._post()
        return answer

    def _post(self) -> None:
        """Posts what waits, one body after another."""
        together, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
        self._is_posting = bool(together)
        if not together:
            return
        answers = deferToThread(self._client.post, [line for line, _ in together])

        def tell(answers: list[Any]) -> None:
            self._post()
            for (_, told), answer in zip(together, answers, strict=True):
                told.callback(answer)

        def fail(failure: Any) -> None:
            self._post()
            for _, told in together:
                told.errback(failure)

        answers.addCallbacks(tell, fail)


class _Client:
    """Posts bodies, from a thread."""

    def __init__(self, address: str, token: str | None, seconds: float) -> None:
        self._address = address
        self._headers = {"content-type": "application/x-ndjson"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._seconds = seconds
        # The run is no page that is crawled: no proxy of the environment.
        self._opener = build_opener(ProxyHandler({}))
        self.retries = 0

    def post(self, lines: list[str]) -> list[Any]:
        """The answers of lines. Sends them again until the run takes them."""
        end = time.monotonic() + self._seconds
        body = "\n".join(lines).encode()
        while True:
            request = Request(self._address, body, self._headers, method="POST")
            pause = _PAUSE
            try:
                with self._opener.open(request, timeout=_ANSWER) as told:
                    return _answers(told.read(), lines)
            except HTTPError as error:
                said = error.read()
                if error.code == 400 and "ndjson" in error.headers.get("content-type", ""):
                    # All of them are bad.
                    return _answers(said, lines)
                if error.code == 413 and len(lines) > 1:
                    half = len(lines) // 2
                    return self.post(lines[:half]) + self.post(lines[half:])
                why = f"{self._address}: {error.code}: {said.decode(errors='replace').strip()}"
                if error.code not in (408, 429, 500, 502, 503, 504):
                    raise RuntimeError(why) from error
                asked = error.headers.get("retry-after", "")
                pause = float(asked) if asked.isdigit() else _PAUSE
            except (OSError, HTTPException, ValueError) as error:
                why = f"{self._address}: {error}"
            left = end - time.monotonic()
            if left < pause:
                raise RuntimeError(f"{why} (for {self._seconds:g} s: DUPFLOW_SECONDS)")
            if self.retries == 0:
                _logger.warning("%s: it is sent again for %g s", why, self._seconds)
            self.retries += 1
            time.sleep(pause)


def _answers(said: bytes, lines: list[str]) -> list[Any]:
    """One for each line; ValueError if a part is missing."""
    answers = [json.loads(line) for line in said.splitlines()]
    if len(answers) != len(lines):
        raise ValueError(f"{len(answers)} answers for {len(lines)} lines")
    return answers
