"""The variables that an agent sees: a short list, constants, and keys that open nothing.

The agent's modules are imported once, in the server, so the server gets the same
variables as the trials: a client that a module builds when it is imported then
works, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from evalkit.sandbox.folders import Places

GATEWAY_PORT: Final = 8377
"""Where the gateway listens in every trial that has a network of its own."""
DUMMY_KEY: Final = "evalkit-dummy-key"

# What programs need in order to be found. No entry may hold a secret or lead out.
_ALLOWED: Final = (
    "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "NODE_PATH", "VIRTUAL_ENV",
    "CONDA_PREFIX", "SYSTEMROOT",
)  # fmt: skip
_CONSTANT: Final = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "USER": "evalkit",
    "LOGNAME": "evalkit",
    "PYTHONHASHSEED": "0",
    "NO_PROXY": "127.0.0.1,localhost,::1",
    "no_proxy": "127.0.0.1,localhost,::1",
    # These start threads or connections of their own, or read a file of real settings.
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHON_DOTENV_DISABLED": "1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    # Spans wait for the end of a turn, and what does not fit into the queue would be lost.
    "OTEL_BSP_MAX_QUEUE_SIZE": "65536",
}
_KEYS: Final = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY",
    "OPENROUTER_API_KEY",
)  # fmt: skip
# Some clients want the version in the URL and some add it themselves.
_BARE_URLS: Final = (
    "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
)  # fmt: skip
_VERSIONED_URLS: Final = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_CERTIFICATE: Final = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
)  # fmt: skip

# What this process was started with. Imported before the agent, so that what the
# agent's own modules set afterwards can be told from what was there.
_AT_START: Final = dict(os.environ)


def server_environment(
    *,
    port: int = GATEWAY_PORT,
    certificate: str = "",
    home: str = "",
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the whole environment of a server for trials, and thereby of the trials.

    Parameters
    ----------
    port
        Where the gateway listens on loopback.
    certificate
        File with the only certificate to trust; only for a server without a room of
        its own, as :func:`~evalkit.sandbox.room.prepare` names the file in the room.
    home
        Folder to be called home while the agent is imported; as above.
    source
        Where the allowed variables are taken from; by default the caller's own.

    Examples
    --------
    >>> env = server_environment(source={"PATH": "/bin", "OPENAI_API_KEY": "sk-real"})
    >>> env["PATH"], env["OPENAI_API_KEY"], env["OPENAI_BASE_URL"]
    ('/bin', 'evalkit-dummy-key', 'http://127.0.0.1:8377/v1')
    """
    known = os.environ if source is None else source
    return {
        **{name: known[name] for name in _ALLOWED if name in known},
        **_CONSTANT,
        **dict.fromkeys(_KEYS, DUMMY_KEY),
        **gateway_variables(port),
        **(dict.fromkeys(_CERTIFICATE, certificate) if certificate else {}),
        **({"HOME": home} if home else {}),
    }


def gateway_variables(port: int) -> dict[str, str]:
    """Return the variables that lead every client to the gateway.

    Examples
    --------
    >>> gateway_variables(8377)["ANTHROPIC_BASE_URL"]
    'http://127.0.0.1:8377'
    """
    url = f"http://127.0.0.1:{port}"
    return {**dict.fromkeys(_BARE_URLS, url), **dict.fromkeys(_VERSIONED_URLS, f"{url}/v1")}


def place_variables(places: Places, *, has_certificate: bool) -> dict[str, str]:
    """Return the variables that name a trial's folders."""
    trusted = dict.fromkeys(_CERTIFICATE, places.certificate) if has_certificate else {}
    folders = {"HOME": places.home, "PWD": places.work}
    return folders | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), places.tmp) | trusted


def adopt(environment: Mapping[str, str]) -> None:
    """Make this process's environment the given one, plus what the agent's imports set.

    Whatever the process was started with, and is not given, goes: so that a server
    that was started with the user's own environment does not pass it on.
    """
    for name, value in _AT_START.items():
        if name not in environment and os.environ.get(name) == value:
            del os.environ[name]
    assign(environment)


def assign(environment: Mapping[str, str]) -> None:
    """Set variables, and leave the others as they are."""
    for name, value in environment.items():
        if os.environ.get(name) != value:  # most are the server's already, and setting is dear
            os.environ[name] = value
