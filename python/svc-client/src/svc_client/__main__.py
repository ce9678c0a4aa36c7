"""`python -m svc_client path REF` and `python -m svc_client pull SOURCE`."""

from __future__ import annotations

import argparse
import sys

from ._client import Client
from .errors import SvcError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m svc_client", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    path = commands.add_parser("path", help="print the path to give to a runtime")
    path.add_argument("ref", help="ns/name:quant, or a file of it: ns/name:quant#FILE")
    pull = commands.add_parser("pull", help="fetch a model")
    pull.add_argument("source", help="a name that is known here, or Org/Name:QUANT of the hub")
    given = parser.parse_args(arguments)
    try:
        client = Client()
        if given.command == "path":
            print(client.path(given.ref))
        else:
            client.pull(given.source, progress=True)
    except SvcError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
