"""OpenTelemetry spans, whoever made them and however they came.

=============  ====================================================================
``exported``   exports (OTLP JSON, dumps of SDKs) to raw spans with plain attributes
``protobuf``   the same for OTLP as protobuf
``otlp``       the body of an OTLP/HTTP request, in either encoding
``dialects``   what a span says: its kind, messages, usage, tool, documents
``chat``       the messages inside
``nesting``    the same thing seen by two libraries; an order that does not change
=============  ====================================================================

A whole file of spans becomes trials in :mod:`evalkit.importers.otel`; spans that an
agent sends while it is tried are taken in by :mod:`evalkit.gateway.tracing`.
"""
