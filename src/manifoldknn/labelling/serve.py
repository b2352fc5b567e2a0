"""The command ``manifoldknn label``: a server for this machine only, and a browser to see it."""

from __future__ import annotations

import argparse
import errno
import logging
import secrets
import socket
import sys
import webbrowser
from contextlib import closing, suppress

from manifoldknn.labelling.project import open_desk
from manifoldknn.tables.table import TableError

_FIRST_PORT = 8765
logger = logging.getLogger("manifoldknn")


def serve(options: argparse.Namespace) -> None:
    """Open a file for labelling and serve it until Ctrl+C.

    The first line on standard output is the address with its token.
    """
    try:
        import uvicorn

        from manifoldknn.labelling.app import make_app
    except ImportError as error:
        raise ImportError(
            "label needs starlette and uvicorn: pip install 'manifoldknn[label]'"
        ) from error
    with closing(_bound(options.port)) as sock:
        port, token = sock.getsockname()[1], secrets.token_urlsafe(24)
        desk, notes = open_desk(options)
        # From here on Ctrl+C is how it ends, and the journal is closed whenever that comes.
        with closing(desk), suppress(KeyboardInterrupt):
            address = f"http://127.0.0.1:{port}/?token={token}"
            print(address, flush=True)
            for note in [*notes, "Ctrl+C ends the server"]:
                print(f"note        {note}", file=sys.stderr)
            config = uvicorn.Config(
                make_app(desk, token, port), log_level="error", access_log=False, lifespan="off",
                server_header=False, ws="none", timeout_graceful_shutdown=2,
            )  # fmt: skip
            logger.setLevel(logging.WARNING)  # the page says what the model does
            desk.open()
            if options.browser:
                webbrowser.open(address)
            uvicorn.Server(config).run(sockets=[sock])


def _bound(port: int | None) -> socket.socket:
    """Return a socket on this machine at a port, or at another one if that is taken."""
    wanted = _FIRST_PORT if port is None else port
    if not 0 <= wanted < 1 << 16:
        raise TableError(f"--port {wanted} must be a number from 0 to 65535")
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", wanted))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        sock.bind(("127.0.0.1", 0))
        told = f"port {wanted} is taken or not allowed: {sock.getsockname()[1]} is used instead"
        print(f"manifoldknn: {told}", file=sys.stderr)
    sock.listen()  # who reads the address may come before the server is up
    return sock
