"""The client for asyncio, against a daemon: see `test_daemon`."""

from __future__ import annotations

import asyncio
import os
import tempfile
import unittest

from svc_client import Client as SyncClient
from svc_client import errors
from svc_client.aio import Client

REF = os.environ.get("SVC_TEST_REF", "")
REPO = os.environ.get("SVC_TEST_REPO", "")


@unittest.skipUnless(REF and REPO, "SVC_TEST_REF and SVC_TEST_REPO name no models")
class Aio(unittest.IsolatedAsyncioTestCase):
    async def test_answers_as_the_other_client(self) -> None:
        client, sync = Client(), SyncClient()
        self.assertEqual(await client.path(REF), sync.path(REF))
        self.assertEqual(await client.files(REF), sync.files(REF))
        self.assertEqual(await client.resolve(REF), sync.resolve(REF))
        self.assertEqual(await client.models(), sync.models())
        several = await asyncio.gather(*(client.resolve(REF) for _ in range(20)))
        self.assertEqual(len({each.manifest_digest for each in several}), 1)

    async def test_pulls_with_progress(self) -> None:
        seen = []
        job = await Client().pull(REPO, progress=seen.append)
        self.assertEqual((seen[-1], job.state), (job, "done"))

    async def test_errors_by_code(self) -> None:
        client = Client()
        with self.assertRaises(errors.UnknownRef):
            await client.resolve("nobody/nothing:q8_0")
        with self.assertRaises(errors.SourceForbidden):
            await client.pull("Nobody/Nothing")


class Hostile(unittest.IsolatedAsyncioTestCase):
    async def serve(self, answer: bytes, hang: bool = False) -> Client:
        folder = self.enterContext(tempfile.TemporaryDirectory()) if hasattr(self, "enterContext") else tempfile.mkdtemp()
        path = f"{folder}/s.sock"

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            if hang:
                self.gone = asyncio.Event()
                await reader.read()
                self.gone.set()
            writer.close()

        server = await asyncio.start_unix_server(handle, path)
        self.addAsyncCleanup(self.close, server)
        return Client(path, timeout=0.5 if hang else 10)

    async def close(self, server: asyncio.AbstractServer) -> None:
        server.close()

    async def test_other_servers_are_told(self) -> None:
        for answer in (b"", b"hello", b"HTTP/1.1 200 OK\r\n\r\nno JSON", b"HTTP/1.1 302 Found\r\n\r\n"):
            with self.subTest(answer):
                client = await self.serve(answer)
                with self.assertRaises(errors.SvcError):
                    await client.status()

    async def test_silence_ends_and_closes_the_connection(self) -> None:
        client = await self.serve(b"", hang=True)
        with self.assertRaises(errors.NoAnswer):
            await client.status()
        await asyncio.wait_for(self.gone.wait(), 5)

    async def test_no_daemon(self) -> None:
        with self.assertRaises(errors.Unreachable):
            await Client("/nonexistent/s.sock").status()


if __name__ == "__main__":
    unittest.main()
