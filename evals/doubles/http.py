"""HTTP as a double speaks it: one request on a connection, a whole body or a chunked one."""

import asyncio
import json
import time

from mneme.evals.doubles.scripts import Json, Request

BLOBS = "/api/blobs/"
"""Below this path files are uploaded as they are."""


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path = first.split(" ")[:2]
    is_json = bool(body) and not path.startswith(BLOBS)
    asked = Request(path, headers, json.loads(body) if is_json else {}, time.monotonic())
    asked.method, asked.raw = method, body
    return asked


async def send_json(writer: asyncio.StreamWriter, body: Json, status: int = 200) -> None:
    """Write a whole answer of JSON."""
    await send_bytes(writer, json.dumps(body).encode(), "application/json", status)


async def send_bytes(writer: asyncio.StreamWriter, body: bytes, kind: str, status: int) -> None:
    """Write a whole answer."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def send_head(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    """Write the head of an answer that comes in chunks."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    await writer.drain()


async def send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write one chunk of a chunked body; an empty one ends it."""
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def as_line(part: Json) -> bytes:
    """Return a line of a stream of JSON."""
    return json.dumps(part, ensure_ascii=False).encode() + b"\n"
