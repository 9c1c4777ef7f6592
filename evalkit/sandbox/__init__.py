"""Fresh processes for trials, each in a room of its own, forked from a warm server.

Processes: :mod:`evalkit.sandbox.pool` is the caller's side (``ForkServer``),
:mod:`evalkit.sandbox.server` the program that it starts, and
:mod:`evalkit.sandbox.worker` what happens in the fresh process itself.

Rooms: :mod:`evalkit.sandbox.room` builds one around a fresh process (``Room``,
``enter``) of parts with a module each: ``barrier`` and ``namespaces`` (no network),
``connections`` (who tried), ``folders``, ``environment``, ``certificates``, ``clock``,
``identifiers``, ``sqlite``. ``warming`` is done once in the server, ``seclusion`` gives
it a table of processes of its own, and ``doctor`` says what a machine can do.

What a trial *is* (agent, gateway, ledger) does not live here: the caller names
an entry as ``"module:function"``, so this package never imports upwards.
This module imports nothing, because the server program pays for it.
"""
