"""Chat messages of OpenAI, Anthropic and LangChain as traces.

Each module has ``trace_of_messages(messages)``, for a conversation in one
vendor's words, as JSON or as live objects of its SDK (anything with
``model_dump``). ``openai`` and ``anthropic`` also have
``trace_of_exchange(request, response)``, for one recorded request.

They are strict: what they cannot read is a ``TraceError`` that says what, which
message and what to do. Files, folders and formats are no business of theirs; see
``evalkit.importers``.
"""
