"""Against a daemon: `SVC_SOCKET` names its socket, `SVC_TEST_REF` a model that it has, and
`SVC_TEST_REPO` a repository that its hub has.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import unittest

from svc_client import Client, errors

REF = os.environ.get("SVC_TEST_REF", "")
REPO = os.environ.get("SVC_TEST_REPO", "")


@unittest.skipUnless(REF and REPO, "SVC_TEST_REF and SVC_TEST_REPO name no models")
class Daemon(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client()

    def test_reads_blobs_by_ranges(self) -> None:
        for file in self.client.open(REF).files:
            with self.subTest(file.name), self.client.open_blob(file.digest) as blob:
                whole = blob.read()
                self.assertEqual(f"sha256:{hashlib.sha256(whole).hexdigest()}", file.digest)
                self.assertEqual(len(whole), file.size)
                blob.seek(-min(10, file.size), io.SEEK_END)
                self.assertEqual(blob.read(), whole[-10:])
                blob.seek(file.size + 1)
                self.assertEqual(blob.read(), b"")
                blob.seek(1)
                self.assertEqual(blob.read(5), whole[1:6])
            with self.assertRaises(ValueError):
                blob.raw.readinto(bytearray(1))

    def test_paths(self) -> None:
        path = self.client.path(REF)
        self.assertTrue(path.exists())
        names = [file.name for file in self.client.files(REF)]
        for name in names:
            self.assertTrue(self.client.path(f"{REF}#{name}").is_file())
        projector = self.client.path(f"{REF}#mmproj")
        self.assertIn("mmproj", projector.name.lower())
        # the beginning of a name, as `svc path` takes it
        self.assertEqual(self.client.path(f"{REF}#mmpr"), projector)
        with self.assertRaises(errors.NotFound) as caught:
            self.client.path(f"{REF}#draft")
        with self.assertRaises(errors.NotFound) as caught:
            self.client.path(f"{REF}#absent")
        self.assertEqual(caught.exception.candidates, names)

    def test_paths_by_other_names(self) -> None:
        path = self.client.path(REF)
        lone = REF.rpartition(":")[0].rpartition("/")[2]
        for name in (lone, REF.upper(), REPO, f"hf.co/{REPO}:Q8_0", f"https://huggingface.co/{REPO}"):
            with self.subTest(name):
                self.assertEqual(self.client.path(name), path)
        with self.assertRaises(errors.UnknownRef):
            self.client.path("nobody/nothing:q8_0")

    def test_errors_by_code(self) -> None:
        with self.assertRaises(errors.UnknownRef):
            self.client.resolve("nobody/nothing:q8_0")
        with self.assertRaises(errors.NoMember) as caught:
            self.client.resolve(REF.rpartition(":")[0] + ":f16")
        self.assertTrue(caught.exception.candidates)
        with self.assertRaises(errors.NotFound):
            self.client.open_blob("0" * 64)
        with self.assertRaises(errors.SourceForbidden):
            self.client.pull("Nobody/Nothing")

    def test_pulls_with_progress(self) -> None:
        seen = []
        job = self.client.pull(REPO, progress=seen.append)
        self.assertEqual(seen[-1], job)
        self.assertEqual(job.state, "done")
        self.assertEqual(self.client.pull(REPO, progress=True).state, "done")
        self.assertEqual(self.client.pull(REF).kind, "ensure")

    def test_pull_refuses_several_quants(self) -> None:
        with self.assertRaises(errors.AmbiguousSelector) as caught:
            self.client.pull("acme/Several")
        self.assertEqual(list(caught.exception.candidates), ["acme/Several:q4_0", "acme/Several:q8_0"])
        result = self.client.pull("acme/Several", quants=[]).result
        self.assertEqual(result and result.quants, ["q4_0", "q8_0"])
        self.client.pull("acme/Several:Q8_0", as_="acme/one")

    def test_pull_refuses_what_is_no_model(self) -> None:
        with self.assertRaises(errors.NotImportable):
            self.client.pull("acme/Broken")
        self.assertEqual(self.client.pull("acme/Broken", force=True).state, "done")

    def test_the_command(self) -> None:
        command = [sys.executable, "-m", "svc_client"]
        found = subprocess.run([*command, "path", REF], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout.strip(), str(self.client.path(REF)))
        absent = subprocess.run([*command, "path", "nobody/nothing:q8_0"], capture_output=True, text=True)
        self.assertEqual((absent.returncode, absent.stdout), (1, ""))
        self.assertIn("E_UNKNOWN_REF", absent.stderr)

    def test_the_file_system(self) -> None:
        try:
            import fsspec
        except ImportError:
            self.skipTest("fsspec is not installed")
        files = fsspec.filesystem("svc")
        expected = {file.name: file.path for file in self.client.files(REF)}
        found = files.find(f"svc://{REF}")
        self.assertEqual(sorted(found), sorted(f"{REF}/{name}" for name in expected))
        for name, path in expected.items():
            with open(path, "rb") as plain, fsspec.open(f"svc://{REF}/{name}") as file:
                whole = plain.read()
                self.assertEqual(file.read(), whole)
            self.assertEqual(files.cat_file(f"svc://{REF}/{name}", start=1, end=4), whole[1:4])
            self.assertEqual(files.read_block(f"svc://{REF}/{name}", 1, 3), whole[1:4])
        for absent in (f"{REF}/absent", "nobody/nothing:q8_0/x", REF.rpartition(":")[0] + ":f16/x", "no model"):
            with self.subTest(absent), self.assertRaises(FileNotFoundError):
                files.info(f"svc://{absent}")
        with self.assertRaises(OSError):
            files.open(f"svc://{REF}/{next(iter(expected))}", "wb")


if __name__ == "__main__":
    unittest.main()
