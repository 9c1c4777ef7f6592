"""One event loop for one conversation, beside any loop that runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class OwnLoop:
    """Runs coroutines one after the other on one loop, from synchronous code.

    Where the calling thread runs a loop already, as notebooks do, this one gets
    a thread of its own: a thread can run only one.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._thread: ThreadPoolExecutor | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; give or raise what it does."""
        if self._runner is None:
            self._runner = asyncio.Runner()
            if _runs_a_loop():
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="evalkit-agent")
        if self._thread is None:
            return self._runner.run(coroutine)
        return self._run_in_thread(self._thread, self._runner, coroutine)

    def _run_in_thread(
        self,
        thread: ThreadPoolExecutor,
        runner: asyncio.Runner,
        coroutine: Coroutine[Any, Any, Any],
    ) -> Any:
        loop = thread.submit(runner.get_loop).result()
        running = thread.submit(runner.run, coroutine)
        try:
            return running.result()
        finally:
            if not running.done():  # Ctrl-C came while this thread waited
                loop.call_soon_threadsafe(_cancel_all, loop)

    def close(self) -> None:
        """Close the loop and its thread; once or more often."""
        runner, self._runner = self._runner, None
        thread, self._thread = self._thread, None
        if runner is None:
            return
        if thread is None:
            runner.close()
            return
        with thread:
            thread.submit(runner.close).result()


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
