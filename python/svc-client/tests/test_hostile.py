"""What listens on the socket may be anything."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import tracemalloc
import unittest
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from svc_client import Client, SvcError, errors
from svc_client._json import decode
from svc_client._socket import default_socket_path, require_own_folder
from svc_client._api import Job, ResolveResult


GOOD = b'{"ref":"r","ns":"n","name":"m","manifestDigest":"d","plan":"p","planReason":"q"}'


@contextmanager
def answering(*answers: bytes, gaps: bool = True) -> Iterator[Client]:
    """A client of a server that sends these answers, whatever is asked: one a connection, or without
    gaps the parts of one."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = os.path.join(folder, "s")
        server.bind(path)
        server.listen()

        def serve() -> None:
            for parts in [[each] for each in answers] if gaps else [answers]:
                connection, _ = server.accept()
                with connection, suppress(ConnectionError):
                    connection.recv(65536)
                    for part in parts:
                        connection.sendall(part)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Client(path, timeout=5)
        finally:
            thread.join()


def http(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Answers(unittest.TestCase):
    def test_that_are_not_of_the_contract(self) -> None:
        cases = {
            "not HTTP": b"hello\r\n\r\n",
            "nothing": b"",
            "not JSON": http("200 OK", b"<html>"),
            "too deep": http("200 OK", b"[" * 100_000),
            "no object": http("200 OK", b"[]"),
            "a field is missing": http("200 OK", b"{}"),
            "a field of another type": http("200 OK", b'{"ref": 1}'),
            "an error without a code": http("404 Not Found", b'{"error": {"message": "x"}}'),
            "an error that is no object": http("500 Oops", b"null"),
            "a redirect": http("302 Found", GOOD, "Location: http://127.0.0.1:9/"),
            "an interim answer alone": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        }
        for what, answer in cases.items():
            with self.subTest(what), answering(answer) as client:
                with self.assertRaises((errors.BadResponse, errors.Unreachable)):
                    client.resolve("a/b:c")

    def test_a_chunk_of_negative_size_is_not_all_that_comes(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        with answering(head, *[b"x" * (1 << 20)] * 32, gaps=False) as client:
            with self.assertRaises(errors.Unreachable):
                client.resolve("a/b:c")
        self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)

    def test_of_a_newer_daemon(self) -> None:
        body = b'{"id":"1","kind":"teleport","ref":"a/b","state":"done","createdAt":"now","news":[1]}'
        with answering(http("200 OK", body)) as client:
            self.assertEqual(client.job("1").kind, "teleport")
        refusal = b'{"error": {"code": "E_NEW", "message": "m", "candidates": ["a"]}}'
        with answering(http("409 Conflict", refusal)) as client:
            with self.assertRaises(SvcError) as caught:
                client.job("1")
        self.assertEqual((caught.exception.code, caught.exception.status), ("E_NEW", 409))
        self.assertEqual(caught.exception.candidates, ["a"])

    def test_a_blob_that_ends_early(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
        part = b"HTTP/1.1 206 Partial\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/10\r\n\r\nabc"
        with answering(head, part) as client, client.open_blob("0" * 64) as blob:
            with self.assertRaises(errors.SvcError):
                blob.read()

    def test_another_range_than_the_one_asked_for(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
        part = http("206 Partial", b"0123456789", "Content-Range: bytes 1-10/11")
        with answering(head, part) as client, client.open_blob("0" * 64) as blob:
            with self.assertRaises(errors.BadResponse):
                blob.read()

    def test_no_daemon(self) -> None:
        with self.assertRaises(errors.Unreachable) as caught:
            Client("/nonexistent/s").status()
        self.assertIsInstance(caught.exception, ConnectionError)


class Sockets(unittest.TestCase):
    def test_the_rule(self) -> None:
        cases: list[tuple[dict[str, str], str]] = [
            ({}, "/tmp/svc-7/svc.sock"),
            ({"SVC_SOCKET": "x"}, "x"),
            ({"SVC_SOCKET": "", "TMPDIR": "/t/"}, "/t/svc-7/svc.sock"),
            ({"XDG_RUNTIME_DIR": "relative", "TMPDIR": "/t"}, "/t/svc-7/svc.sock"),
            ({"XDG_RUNTIME_DIR": "/run/7", "TMPDIR": "/t"}, "/run/7/svc-7/svc.sock"),
        ]
        for env, path in cases:
            with self.subTest(path):
                self.assertEqual(default_socket_path(env, 7), path)

    def test_a_folder_of_somebody_else(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            own = os.stat(folder).st_uid
            require_own_folder(f"{folder}/s", own)
            require_own_folder(f"{folder}/absent/s", own)
            for bad in ("open", "link"):
                with self.subTest(bad), self.assertRaises(errors.UnsafeSocket):
                    if bad == "open":
                        os.mkdir(f"{folder}/open")
                        os.chmod(f"{folder}/open", 0o755)
                    else:
                        os.symlink(folder, f"{folder}/link")
                    require_own_folder(f"{folder}/{bad}/s", own)
            with self.assertRaises(errors.UnsafeSocket):
                require_own_folder(f"{folder}/s", own + 1)


class Decoding(unittest.TestCase):
    def test_optional_and_renamed_fields(self) -> None:
        found = decode(
            ResolveResult,
            {"ref": "r", "ns": "n", "name": "m", "manifestDigest": "d", "plan": "p", "planReason": "q"},
        )
        self.assertEqual((found.manifest_digest, found.index_digest), ("d", None))

    def test_a_boolean_is_no_number(self) -> None:
        job = {"id": "1", "kind": "gc", "ref": "", "state": "done", "createdAt": "", "filesDone": True}
        with self.assertRaises(errors.BadResponse):
            decode(Job, job)


if __name__ == "__main__":
    unittest.main()
