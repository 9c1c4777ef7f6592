"""The one certificate authority that a trial trusts.

It signs the https fixtures, and it makes SDKs cheap: most of what the construction
of a client costs is reading the machine's hundred and more certificates.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Authority(NamedTuple):
    """A certificate authority of evalkit's own; valid from 2000 on, for any clock."""

    certificate: bytes
    """PEM text, for clients."""
    key: bytes
    """PEM text, for signing; it is made for one run and never written to a disk. Trials whose
    world answers https are told it: nobody but the trials of this run trusts it."""


NO_AUTHORITY: Final = Authority(b"", b"")


def make_authority() -> Authority:
    """Make a new authority, once for all trials of a server."""
    import trustme

    authority = trustme.CA(organization_name="evalkit", organization_unit_name="sandbox")
    return Authority(authority.cert_pem.bytes(), authority.private_key_pem.bytes())
