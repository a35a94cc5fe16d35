"""A network between a ledger and its PostgreSQL server that can freeze, and that can lose replies.

A relay on a Unix socket of its own. Bytes are passed on as they are; a `COMMIT` of a write transaction
can be passed to the server, or held back, while its client sees the connection go.
"""

import selectors
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

WRITES = b"txid_current"  # every write transaction names itself
COMMIT = b"COMMIT\0"
SOCKET = ".s.PGSQL.5432"


class Network:
    """Relays connections until it is closed."""

    def __init__(self, server: Path, folder: Path) -> None:
        self.folder = folder
        self.is_frozen = False
        self.is_down = False
        self.losing: str | None = None  # "reply": after the server has it; "request": before
        self.lost = 0
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._server = str(server / SOCKET)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        self._listener.settimeout(0.1)
        self._start(self._accept)

    def address(self, location: str, server: Path) -> str:
        """The same ledger, through this network."""
        return location.replace(str(server), quote(str(self.folder)))

    def close(self) -> None:
        """End all connections."""
        self._is_closed = True
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(TimeoutError):
                client, _ = self._listener.accept()
                client.settimeout(None)
                self._start(self._relay, client)

    def _start(self, act, *arguments) -> None:
        thread = threading.Thread(target=act, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            if self.is_down:
                return
            server.connect(self._server)
            self._pass(client, server)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """Bytes from either side to the other until one of them goes."""
        writes = False
        with selectors.DefaultSelector() as chosen:
            chosen.register(client, selectors.EVENT_READ, server)
            chosen.register(server, selectors.EVENT_READ, client)
            while not self._is_closed:
                for key, _ in chosen.select(0.1):
                    while self.is_frozen and not self._is_closed:
                        time.sleep(0.02)
                    passed = key.fileobj.recv(1 << 16)
                    if not passed:
                        return
                    if key.fileobj is client:
                        writes = writes or WRITES in passed
                        if COMMIT in passed and writes and self.losing:
                            self._lose(client, server, passed)
                            return
                        writes = writes and COMMIT not in passed
                    key.data.sendall(passed)

    def _lose(self, client: socket.socket, server: socket.socket, passed: bytes) -> None:
        self.lost += 1
        if self.losing == "reply":
            server.sendall(passed)
            server.recv(1 << 16)  # it is committed now; nobody will hear of it
            client.close()
            return
        client.close()
        while not self._is_closed and server.fileno() >= 0:
            server.settimeout(0.1)  # the server goes on waiting in its transaction, until it is ended
            with suppress(TimeoutError):
                if not server.recv(1 << 16):
                    return
