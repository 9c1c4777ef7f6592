"""The world's sockets: connections, names, and what a client speaks on them.

One thread watches all that is listened at, and each connection has its own, as the
scripted model's have (:mod:`evalkit.gateway.server`). Whether a client speaks TLS is told
from its first byte, on every port.
"""

from __future__ import annotations

import _thread
import select
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from time import sleep  # before an agent puts another one in its place
from typing import Final, NamedTuple, Self

from evalkit.outside.names import answer_to, question_of
from evalkit.outside.places import ADDRESS
from evalkit.outside.secure import DistrustError, Secure, distrust
from evalkit.outside.telling import Sent
from evalkit.outside.world import World
from evalkit.serving.delivery import Delivery
from evalkit.serving.http1 import BadHttp, Connection, HttpRequest

PATIENCE_S: Final = 10.0
"""Seconds for which the rest of a request may stay away."""
_HELLO: Final = b"\x16"
"""How TLS begins."""
_CROWDED_S: Final = 0.01
_MAX_QUESTION: Final = 4096
_USUAL: Final[Mapping[str, int]] = {"http": 80, "https": 443}


class Sockets(NamedTuple):
    """What is listened at; all of it is bound already."""

    listeners: Sequence[socket.socket] = ()
    """For HTTP."""
    names: socket.socket | None = None
    """For questions to the name server, as datagrams."""
    long_names: socket.socket | None = None
    """The same, over connections."""
    proxy: socket.socket | None = None
    """For clients that were told to come by a proxy."""


class _Way(NamedTuple):
    """How a request came."""

    scheme: str
    host: str
    """What TLS said, or the address that was connected to."""
    port: int
    is_proxied: bool = False


class WorldServer:
    """Brings requests to a world.

    Parameters
    ----------
    world
        What answers.
    secure
        Makes connections secure.
    sockets
        Where to listen.
    """

    def __init__(self, world: World, secure: Secure, sockets: Sockets) -> None:
        self._world = world
        self._secure = secure
        self._sockets = sockets
        self._is_stopped = False

    def start(self) -> Self:
        """Begin to listen; returns at once, and no client is refused from then on."""
        poller = select.poll()
        watched = {one.fileno(): one for one in self._watched()}
        for one in watched.values():
            poller.register(one, select.POLLIN)
        _thread.start_new_thread(self._watch, (poller, watched))
        return self

    def stop(self) -> None:
        """Stop listening; a trial's own process need not, for it ends."""
        self._is_stopped = True
        for one in self._watched():
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes the thread
            one.close()

    def _watched(self) -> list[socket.socket]:
        names = (self._sockets.names, self._sockets.long_names, self._sockets.proxy)
        return [*self._sockets.listeners, *(one for one in names if one is not None)]

    def _watch(self, poller: select.poll, watched: Mapping[int, socket.socket]) -> None:
        while not self._is_stopped:
            for fd, _ in poller.poll():
                try:
                    self._take(watched[fd])
                except OSError:
                    # Stopped; or the agent has used up its open files, and may yet close some.
                    sleep(_CROWDED_S)

    def _take(self, source: socket.socket) -> None:
        if source is self._sockets.names:
            question, sender = source.recvfrom(_MAX_QUESTION)
            source.sendto(self._named(question), sender)
            return
        client, _ = source.accept()
        serve = self._serve_names if source is self._sockets.long_names else self._serve
        try:
            _thread.start_new_thread(serve, (client, source is self._sockets.proxy))
        except RuntimeError:  # no more threads
            client.close()

    def _named(self, message: bytes) -> bytes:
        question = question_of(message)
        if question is not None and question.is_of_a_host:
            self._world.looked_up(question.name)
        return answer_to(message, ADDRESS)

    def _serve_names(self, client: socket.socket, _: bool) -> None:
        with client, suppress(OSError), client.makefile("rb") as reader:
            client.settimeout(PATIENCE_S)
            while head := reader.read(2):
                answer = self._named(reader.read(int.from_bytes(head, "big")))
                client.sendall(len(answer).to_bytes(2, "big") + answer)

    def _serve(self, client: socket.socket, is_proxy: bool) -> None:
        # An OSError means that the client has gone; what it asked for is recorded.
        with client, suppress(OSError):
            address, port = client.getsockname()[:2]
            way = _Way("http", str(address), port, is_proxy)
            self._serve_stream(client, way)

    def _serve_stream(self, client: socket.socket, way: _Way) -> None:
        """Serve a connection, or what runs through a tunnel."""
        first = client.recv(1, socket.MSG_PEEK)
        try:
            if first == _HELLO:
                client, host = self._secure.wrap(client)
                way = way._replace(scheme="https", host=host or way.host)
            if first:
                self._serve_requests(client, way)
        except DistrustError as problem:
            self._world.distrusted(problem.host or way.host, problem.how)
        except OSError as error:
            problem_of_client = distrust(error, way.host)
            if problem_of_client is not None:
                self._world.distrusted(way.host, problem_of_client.how)

    def _serve_requests(self, client: socket.socket, way: _Way) -> None:
        with closing(Connection(client, patience_s=PATIENCE_S)) as connection:
            while not self._is_stopped:
                request = self._received(connection, way)
                if request is None:
                    return
                if way.is_proxied and request.method == "CONNECT":
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    self._serve_stream(client, _Way("http", *_place(request.target, 443)))
                    return
                if not self._answer(connection, request, way):
                    return

    def _received(self, connection: Connection, way: _Way) -> HttpRequest | None:
        """Give the next request; ``None`` if there is none, or it was one that is none."""
        try:
            return connection.receive()
        except BadHttp as problem:
            sent = Sent(problem.method, _url(problem.target, problem.headers, way), {}, b"")
            reason = _explained(problem)
            connection.send(self._world.reject(sent, reason, status=problem.status))
            return None

    def _answer(self, connection: Connection, request: HttpRequest, way: _Way) -> bool:
        """Answer one request, and tell whether another may follow."""
        url = _url(request.target, request.headers, way)
        sent = Sent(request.method, url, request.headers, request.body)
        try:
            delivery, delay_s = self._world.answer(sent)
        except OSError:
            raise  # nobody is left to record for
        except Exception as error:
            delivery, delay_s = self._world.broken(error), 0.0
        if delay_s:
            sleep(delay_s)
        goes_on = connection.send(delivery, is_head=request.method == "HEAD")
        return goes_on and request.keeps_open and not _closes(delivery)


def _closes(delivery: Delivery) -> bool:
    return any(
        name.lower() == "connection" and value.lower() == "close"
        for name, value in delivery.headers.items()
    )


def _url(target: str, headers: Mapping[bytes, bytes], way: _Way) -> str:
    """Give the absolute address of a request."""
    if not target.startswith("/") and "://" in target:
        return target
    named = headers.get(b"host", b"").decode("latin-1")
    host = _place(named, 0)[0] if named else way.host
    shown = f"[{host}]" if ":" in host else host
    usual = way.port == _USUAL[way.scheme]
    at = shown if usual else f"{shown}:{way.port}"
    return f"{way.scheme}://{at}{target if target.startswith('/') else f'/{target}'}"


def _place(text: str, port: int) -> tuple[str, int]:
    """Take a host and its port apart."""
    host, colon, number = text.rpartition(":")
    if not colon or number.endswith("]") or not number.isdecimal():
        return text.strip("[]"), port
    return host.strip("[]"), int(number)


def _explained(problem: BadHttp) -> str:
    if "PRI * HTTP/2.0" in str(problem):
        return "the client speaks HTTP/2 without asking; fixtures are served over HTTP/1.1"
    return str(problem)
