"""Fresh processes for trials, forked from a warm, single-threaded server.

:mod:`evalkit.sandbox.pool` is the caller's side (``ForkServer``),
:mod:`evalkit.sandbox.server` the program that it starts, and
:mod:`evalkit.sandbox.worker` what happens in the fresh process itself.

What a trial *is* (agent, gateway, ledger) does not live here: the caller names
an entry as ``"module:function"``, so this package never imports upwards.
This module imports nothing, because the server program pays for it.
"""
