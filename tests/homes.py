"""A public home on 127.0.0.1 for the tests: serves bytes, understands ranges, and can be told to misbehave."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kgcf.data.manifest import FileFacts, GraphFacts


@dataclass
class Home:
    """What the server has and how it behaves; `asked` is the log of (path, Range header)."""

    url: str = ""
    content: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cut_after: dict[str, list[int]] = field(default_factory=dict)  # bytes to send per request, then hang up
    failures: dict[str, list[int]] = field(default_factory=dict)  # status codes to answer first
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Home]:
    """Run a home in a thread for the length of the block."""
    home = Home()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, home)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    home.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield home
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(handler: BaseHTTPRequestHandler, home: Home) -> None:
    asked = handler.headers.get("Range")
    home.asked.append((handler.path, asked))
    if home.failures.get(handler.path):
        handler.send_error(home.failures[handler.path].pop(0))
        return
    if handler.path not in home.content:
        handler.send_error(404)
        return
    whole = home.content[handler.path]
    start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and home.ranges else 0
    if start >= len(whole) and start:
        handler.send_error(416)
        return
    body = whole[start:]
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    cuts = home.cut_after.get(handler.path)
    handler.wfile.write(body[: cuts.pop(0)] if cuts else body)


def graph_facts(name: str, files: dict[str, bytes], steps: list[dict[str, object]]) -> GraphFacts:
    """Facts about a graph with these files, as the manifest would have them."""
    rows = {file: [line.split("\t") for line in text.decode().splitlines()] for file, text in files.items()}
    splits = [rows[f"{part}.txt"] for part in ("train", "valid", "test")]
    triples = [row for split in splits for row in split]
    facts = {f: FileFacts(hashlib.sha256(text).hexdigest(), len(rows[f]), len(text)) for f, text in files.items()}
    return GraphFacts(
        name=name,
        entities=len({end for row in triples for end in (row[0], row[2])}),
        relations=len({row[1] for row in triples}),
        train=len(splits[0]),
        valid=len(splits[1]),
        test=len(splits[2]),
        repeated_in_train=len(splits[0]) - len({tuple(row) for row in splits[0]}),
        files=facts,
        source="a test",
        licence="none",
        download=tuple(steps),
    )
