"""The endpoint's socket: a thread a connection, on loopback only.

A server that is about to die with its process need not be stopped: its threads
are daemons, and nothing polls. They are bare threads of the interpreter: they start for
a fraction of what :class:`threading.Thread` takes in a fresh process, and an agent that
looks at its threads finds its own.
"""

from __future__ import annotations

import _thread
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Final, Self

from evalkit.gateway.endpoint import Endpoint
from evalkit.gateway.wires import base_urls
from evalkit.serving.delivery import Delivery
from evalkit.serving.http1 import MAX_BODY_BYTES, BadHttp, Connection, HttpRequest

HOST: Final = "127.0.0.1"
_BACKLOG: Final = 512
_PATIENCE_S: Final = 0.01


class GatewayServer:
    """Serves an endpoint.

    Parameters
    ----------
    endpoint
        What answers.
    port
        Where to listen; 0 takes a free one.
    max_body
        Bytes that a request may have.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(
        self, endpoint: Endpoint, *, port: int = 0, max_body: int = MAX_BODY_BYTES
    ) -> None:
        self._endpoint = endpoint
        self._max_body = max_body
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((HOST, port))
        except OSError:
            self._listener.close()
            raise
        self.port: int = self._listener.getsockname()[1]
        self._connections: set[Connection] = set()
        self._guard = threading.Lock()
        self._is_stopped = False

    @property
    def env(self) -> dict[str, str]:
        """Environment variables that lead the usual clients here."""
        return base_urls(self.port, HOST)

    def start(self) -> Self:
        """Begin to listen; returns at once, and no client is refused from then on."""
        self._listener.listen(_BACKLOG)
        _thread.start_new_thread(self._accept, ())
        return self

    def stop(self) -> None:
        """Stop listening and close every connection."""
        self._is_stopped = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        with self._guard:
            connections = tuple(self._connections)
        for connection in connections:
            connection.hang_up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self) -> None:
        while not self._is_stopped:
            try:
                client, _ = self._listener.accept()
            except OSError:
                # Stopped; or the agent has used up its open files, and may yet close some.
                time.sleep(_PATIENCE_S)
                continue
            try:
                _thread.start_new_thread(self._serve, (client,))
            except RuntimeError:  # no more threads
                client.close()

    def _serve(self, client: socket.socket) -> None:
        # An OSError means that the client has gone; what it asked for is recorded.
        with client, contextlib.suppress(OSError):
            connection = Connection(client, max_body=self._max_body)
            with self._registered(connection):
                while not self._is_stopped and self._serve_one(connection):
                    pass

    @contextlib.contextmanager
    def _registered(self, connection: Connection) -> Iterator[None]:
        """Let a connection be ended by :meth:`stop` while it is served."""
        with self._guard:
            self._connections.add(connection)
        try:
            yield
        finally:
            with self._guard:
                self._connections.discard(connection)
            connection.close()

    def _serve_one(self, connection: Connection) -> bool:
        """Answer one request, and tell whether another may follow."""
        try:
            received = connection.receive()
        except BadHttp as problem:
            connection.send(self._endpoint.reject(problem))
            return False
        if received is None:
            return False
        goes_on = connection.send(self._answer(received))
        return goes_on and received.keeps_open

    def _answer(self, received: HttpRequest) -> Delivery:
        try:
            return self._endpoint.answer(received)
        except OSError:
            raise  # nobody is left to record for
        except Exception as error:
            return self._endpoint.broken(error)
