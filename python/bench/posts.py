"""posts.py PORT RATE SECONDS CLIENTS: how long a run with `source.kind = "http"` takes for an answer.

Posts RATE documents of 120 words a second, one a request, half of them near-duplicates of others. A request is
timed from the moment at which it is due, so that what a slow answer delays is counted.
"""

import asyncio
import json
import random
import sys
import time

WORDS = [f"w{n}" for n in range(5000)]
TEXTS = 3000


async def client(port, due, texts, draw, took):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    refused = 0
    while (item := await due.get()) is not None:
        number, at = item
        words = list(draw.choice(texts))
        words[draw.randrange(len(words))] = draw.choice(WORDS)
        body = json.dumps({"id": f"d{number}", "text": " ".join(words)}).encode()
        head = f"POST /documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        told = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(told.split(b"content-length:")[1].split(b"\r\n")[0]))
        refused += not told.startswith(b"http/1.1 200")
        took.append(time.perf_counter() - at)
    writer.close()
    return refused


async def main(port, rate, seconds, clients):
    draw, due, took = random.Random(1), asyncio.Queue(), []
    texts = [draw.choices(WORDS, k=120) for _ in range(TEXTS)]
    running = [asyncio.create_task(client(port, due, texts, draw, took)) for _ in range(clients)]
    begun, sent = time.perf_counter(), 0
    while (now := time.perf_counter() - begun) < seconds:
        while sent < int(now * rate):
            due.put_nowait((sent, begun + sent / rate))
            sent += 1
        await asyncio.sleep(0.001)
    for _ in running:
        due.put_nowait(None)
    refused = sum(await asyncio.gather(*running))
    answered = len(took) / (time.perf_counter() - begun)
    took.sort()
    p50, p99 = (1e3 * took[len(took) * share // 100] for share in (50, 99))
    print(f"{len(took)} requests, {refused} refused, {answered:.0f} a second: p50 {p50:.1f} ms, p99 {p99:.1f} ms")


asyncio.run(main(*map(int, sys.argv[1:])))
