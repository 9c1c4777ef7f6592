"""The variables that an agent sees, and the certificate that they name."""

from __future__ import annotations

import datetime
import ssl

import pytest

from evalkit.sandbox.certificates import make_authority
from evalkit.sandbox.environment import (
    DUMMY_KEY,
    gateway_variables,
    place_variables,
    server_environment,
)
from evalkit.sandbox.folders import Places

CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


@pytest.mark.parametrize(
    "name",
    ["SSH_AUTH_SOCK", "DOCKER_HOST", "PGHOST", "HTTPS_PROXY", "http_proxy", "ALL_PROXY",
     "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "AWS_PROFILE", "HOME", "LD_PRELOAD", "MY_TOKEN"],
)  # fmt: skip
def test_other_variables_never_enter(name):
    """Only what is on the list comes from the caller."""
    assert name not in server_environment(source={name: "real"})


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"])
def test_keys_are_dummies(name):
    """SDKs refuse to start without a key; a real one is replaced."""
    assert server_environment(source={name: "sk-real"})[name] == DUMMY_KEY


def test_urls_have_the_form_that_each_client_wants():
    """Anthropic's and Google's add the version themselves, OpenAI's does not."""
    urls = gateway_variables(8377)
    with_version = {name for name, url in urls.items() if url.endswith("/v1")}
    assert with_version == {"OPENAI_BASE_URL", "OPENAI_API_BASE"}
    assert {url.removesuffix("/v1") for url in urls.values()} == {"http://127.0.0.1:8377"}


def test_certificate_variables_name_the_file():
    """In the server the caller's file, in a trial the one in its room."""
    server = server_environment(certificate="/x/ca.pem", source={})
    assert {server[name] for name in CERTIFICATES} == {"/x/ca.pem"}
    trial = place_variables(Places.under("/tmp/evalkit"), has_certificate=True)
    assert {trial[name] for name in CERTIFICATES} == {"/tmp/evalkit/certificate.pem"}
    assert "SSL_CERT_FILE" not in place_variables(Places.under("/r"), has_certificate=False)


def test_authority_is_one_certificate_that_any_clock_accepts(tmp_path):
    """A context that trusts it trusts nothing else, and it was issued long ago."""
    path = tmp_path / "ca.pem"
    path.write_bytes(make_authority().certificate)
    (known,) = ssl.create_default_context(cafile=str(path)).get_ca_certs()
    issued = ssl.cert_time_to_seconds(str(known["notBefore"]))
    assert issued <= datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC).timestamp()


def test_authorities_differ():
    """Nobody else's certificate, not even of another run, is trusted."""
    assert make_authority().key != make_authority().key
