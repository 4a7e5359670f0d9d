"""A pipeline for Scrapy: each page is posted to a run, and dropped if it repeats an older one.

    # settings.py
    ITEM_PIPELINES = {"dupflow.scrapy.RepeatsPipeline": 300}
    DUPFLOW_URL = "http://127.0.0.1:9600"

The run has `source.kind = "http"`; docs/scrapy.md has all settings. While a body is on its way, further items
gather for the next one; an item waits for its answer, so that Scrapy crawls no faster than repeats are found.
Where the run is away, full, or restarts, the body is sent again.
"""

import asyncio
import json
import logging
import time
import uuid
from datetime import date
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem
from scrapy.utils.asyncio import is_asyncio_available

__all__ = ["RepeatsPipeline"]

_logger = logging.getLogger("dupflow.scrapy")

# Most items and bytes of a body; an item alone may have more bytes.
_ITEMS = 500
_BYTES = 1 << 20
# Seconds until an answer is given up; the run answers within 30.
_ANSWER = 60
# Seconds between two tries.
_PAUSE = 1.0

_Waiting = list[tuple[str, "asyncio.Future[Any]"]]


class RepeatsPipeline:
    """Posts items, and drops or marks those that repeat an older document."""

    def __init__(self, crawler: Any) -> None:
        settings = crawler.settings
        address = settings.get("DUPFLOW_URL") or ""
        fields = settings.getlist("DUPFLOW_FIELDS")
        self._repeats = settings.get("DUPFLOW_REPEATS", "drop")
        problems = []
        # Not `NotConfigured`, which would let all items pass.
        if urlsplit(address).scheme not in ("http", "https"):
            problems.append(f"DUPFLOW_URL: found {address!r}, expected an address, as http://127.0.0.1:9600")
        if self._repeats not in ("drop", "mark"):
            problems.append(f'DUPFLOW_REPEATS: found {self._repeats!r}, expected "drop" or "mark"')
        for name in {"id", "text", "ts", "op"}.intersection(fields):
            problems.append(f"DUPFLOW_FIELDS: {name!r} is a name of the feed; DUPFLOW_ID, _TEXT and _TS set them")
        if not is_asyncio_available():
            problems.append("Scrapy runs without asyncio: leave out TWISTED_REACTOR, which is asyncio's by default")
        if problems:
            raise ValueError("; ".join(problems))
        self._fields = {
            "id": settings.get("DUPFLOW_ID", "url"),
            "text": settings.get("DUPFLOW_TEXT", "text"),
            **{name: name for name in fields},
        }
        if settings.get("DUPFLOW_TS"):
            self._fields["ts"] = settings.get("DUPFLOW_TS")
        self._client = _Client(address, settings.get("DUPFLOW_TOKEN"))
        self._seconds = settings.getfloat("DUPFLOW_SECONDS", 300.0)
        self._crawler = crawler
        self._stats = crawler.stats
        # Lines that are to be posted, each with its answer; and the task that posts them.
        self._waiting: _Waiting = []
        self._posting: asyncio.Task[None] | None = None
        self._closing: Any = None

    @classmethod
    def from_crawler(cls, crawler: Any) -> "RepeatsPipeline":
        return cls(crawler)

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        adapter = ItemAdapter(item)
        found = {key: adapter.get(name) for key, name in self._fields.items()}
        row = {key: value for key, value in found.items() if value is not None}
        answer = await self._answer(_line(row))
        self._stats.inc_value("dupflow/documents")
        if "bad" in answer:
            self._stats.inc_value("dupflow/bad")
            _logger.warning("%s is no document, and is passed on: %s", row.get("id"), answer["bad"])
        elif "epoch" not in answer:
            self._stats.inc_value("dupflow/undecided")
        elif answer.get("copy"):
            self._stats.inc_value("dupflow/repeats")
            if self._repeats == "drop":
                raise DropItem(f"{row['id']} repeats {answer['of']}", log_level="DEBUG")
        if self._repeats == "mark":
            adapter["dupflow"] = answer
        return item

    async def _answer(self, line: str) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((line, answer))
        if self._posting is None or self._posting.done():
            self._posting = asyncio.ensure_future(self._post())
        return await answer

    async def _post(self) -> None:
        """Posts what waits, one body after another."""
        while self._waiting:
            items, length = 0, 0
            for line, _ in self._waiting[:_ITEMS]:
                length += len(line.encode())
                if items > 0 and length > _BYTES:
                    break
                items += 1
            together, self._waiting = self._waiting[:items], self._waiting[items:]
            await self._deliver(together)

    async def _deliver(self, together: _Waiting) -> None:
        """Posts a body until the run takes it."""
        end = time.monotonic() + self._seconds
        body, key = "\n".join(line for line, _ in together), uuid.uuid4().hex
        while True:
            try:
                answers = await asyncio.to_thread(self._client.post, body, len(together), key)
            except _TooLargeError as error:
                if len(together) == 1:
                    return _fail(together, error)
                half = len(together) // 2
                await self._deliver(together[:half])
                return await self._deliver(together[half:])
            except _LaterError as error:
                if time.monotonic() + error.pause > end:
                    return _fail(together, RuntimeError(f"{error} (for {self._seconds:g} s: DUPFLOW_SECONDS)"))
                if self._stats.get_value("dupflow/retries", 0) == 0:
                    _logger.warning("%s: it is sent again for %g s", error, self._seconds)
                self._stats.inc_value("dupflow/retries")
                await asyncio.sleep(error.pause)
            except Exception as error:
                _fail(together, error)
                return self._close(error)
            else:
                for (_, told), answer in zip(together, answers, strict=True):
                    if not told.done():
                        told.set_result(answer)
                return None

    def _close(self, error: Exception) -> None:
        """Ends the crawl: no item could be posted."""
        if self._closing is not None:
            return
        _logger.error("the crawl is closed: %s", error)
        engine = self._crawler.engine
        if hasattr(engine, "close_spider_async"):
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason="dupflow_refused"))
        else:
            self._closing = engine.close_spider(self._crawler.spider, "dupflow_refused")


class _LaterError(Exception):
    """The body may be taken later."""

    def __init__(self, why: str, pause: float = _PAUSE) -> None:
        super().__init__(why)
        self.pause = pause


class _TooLargeError(Exception):
    """The body is too large."""


class _Client:
    """Posts bodies, directly: the run is no page that is crawled, so no proxy of the environment is used."""

    def __init__(self, address: str, token: str | None) -> None:
        parts = urlsplit(address)
        self._address = address.rstrip("/") + "/documents"
        self._kind: type[HTTPConnection] = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._place = (parts.hostname or "", parts.port)
        self._path = parts.path.rstrip("/") + "/documents"
        self._headers = {"content-type": "application/x-ndjson"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    def post(self, body: str, lines: int, key: str) -> list[Any]:
        """The answers of the lines of a body, which is stored once, however often it is sent with its key."""
        connection = self._kind(*self._place, timeout=_ANSWER)
        try:
            connection.request("POST", self._path, body.encode(), {**self._headers, "idempotency-key": key})
            told = connection.getresponse()
            said = told.read()
        except (OSError, HTTPException) as error:
            raise _LaterError(f"{self._address}: {error}") from error
        finally:
            connection.close()
        # Of 400 with an answer for each line all are bad.
        if told.status < 300 or (told.status == 400 and "ndjson" in told.headers.get("content-type", "")):
            answers = [json.loads(line) for line in said.splitlines()]
            if len(answers) != lines:
                raise _LaterError(f"{self._address}: {len(answers)} answers for {lines} lines")
            return answers
        why = f"{self._address}: {told.status}: {said.decode(errors='replace').strip()}"
        if told.status == 413:
            raise _TooLargeError(why)
        if told.status in (408, 429, 500, 502, 503, 504):
            asked = told.headers.get("retry-after", "")
            raise _LaterError(why, float(asked) if asked.isdigit() else _PAUSE)
        raise RuntimeError(why)


def _fail(together: _Waiting, error: Exception) -> None:
    for _, told in together:
        if not told.done():
            told.set_exception(error)


def _line(row: dict[str, Any]) -> str:
    line = json.dumps(row, ensure_ascii=False, default=_plain)
    try:
        line.encode()
    except UnicodeEncodeError:
        # Half of a character, which only an escape can hold; the run knows what it means.
        return json.dumps(row, default=_plain)
    return line


def _plain(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a document has no values of {type(value).__name__}, as {value!r:.60}")
