"""The career copilot with one planted mistake each: what a suite must notice.

Each is a thin change of the copilot, and is named like its mistake. In the suite
``career`` the scenarios named here fail with it. Under *caught by* stands a grader, or,
where no grader is needed to fail the trial, the code of its reason; ``crash_test`` is
:func:`evalkit.testing.crash_test`, which kills the copilot after each event of the scenario.

Two of them can be seen from outside by what the copilot logs, or by what it meets:
``download_buffered_whole`` tells how much it has read (sockets hold more than a small
fixture, so nobody else can tell), and ``bounds_after_extraction`` meets a bomb on a
page behind the bound, where the copilot itself never looks.

=============================== ========================== ================== =================
mistake                         scenario                   caught by          in the reason
=============================== ========================== ================== =================
http_error_as_generic           posting-is-gone            prompt             not_found
http_error_as_generic           site-has-an-error          prompt             site_error
unsupported_host_as_generic     unsupported-host           prompt             unsupported_host
swallowed_error                 site-hangs-up              truth              save_job
download_buffered_whole         page-is-too-large          log                after 49152 bytes
follows_redirects               posting-has-moved          http               evil.example.test
saves_half                      posting-is-gone            database           count(*)
save_lost_at_restart            link-before-profile        answer             I saved Data
ids_reused                      numbers-after-restart      database           Data Platform
clock_read_at_import            save-posting               database           saved_at
answered_twice                  duplicate-update           answer             turn 3: 1 replies
answered_twice                  save-posting               crash_test         gave 4 rows
answered_before_work            save-posting               crash_test         jobs: gave 0 rows
sends_again                     telegram-hangs-up          http               POST
onboarding_in_memory            onboarding-interrupted     answer             skills
default_answers_chat            telegram-is-busy           answer             You are welcome
fabricated_success              model-stays-rate-limited   answer             could not finish
truncated_stream_taken_as_whole answer-ends-early          answer             apply at once
truncated_stream_taken_as_whole stream-ends-early          answer             broke off
empty_tool_args_acted_upon      arguments-break-off        prompt             was not run
analysis_without_thread         fit-analysis               errors             NoThread
accepts_any_report              analysis-of-the-wrong-form prompt             form that is
injection_obeyed                posting-with-injection     database           profiles
posting_among_rules             posting-with-injection     unscripted_call    does not match
bounds_after_extraction         resume-is-too-long         answer             first 10 pages
canary_in_log                   resume-with-canaries       canary             resume-email
canary_in_database              resume-with-canaries       canary             resume-email
canary_in_exported_span         resume-with-canaries       canary             resume-email
chat_unredacted                 contact-data-in-the-chat   canary             chat-email
token_in_log                    save-posting               canary             bot-token
forgets_half                    delete-my-data             database           count
=============================== ========================== ================== =================
"""

from __future__ import annotations

import os
from typing import Final

from evalkit.examples.career import bot

from .answers import (
    accepts_any_report,
    analysis_without_thread,
    default_answers_chat,
    empty_tool_args_acted_upon,
    fabricated_success,
    injection_obeyed,
    posting_among_rules,
    truncated_stream_taken_as_whole,
)
from .leaks import (
    bounds_after_extraction,
    canary_in_database,
    canary_in_exported_span,
    canary_in_log,
    chat_unredacted,
    forgets_half,
    token_in_log,
)
from .messages import (
    answered_before_work,
    answered_twice,
    onboarding_in_memory,
    sends_again,
)
from .pages import (
    clock_read_at_import,
    download_buffered_whole,
    follows_redirects,
    http_error_as_generic,
    ids_reused,
    save_lost_at_restart,
    saves_half,
    swallowed_error,
    unsupported_host_as_generic,
)

PLANTED: Final = (
    http_error_as_generic,
    unsupported_host_as_generic,
    swallowed_error,
    download_buffered_whole,
    follows_redirects,
    saves_half,
    save_lost_at_restart,
    ids_reused,
    clock_read_at_import,
    answered_twice,
    answered_before_work,
    sends_again,
    onboarding_in_memory,
    default_answers_chat,
    fabricated_success,
    truncated_stream_taken_as_whole,
    empty_tool_args_acted_upon,
    analysis_without_thread,
    accepts_any_report,
    injection_obeyed,
    posting_among_rules,
    bounds_after_extraction,
    canary_in_log,
    canary_in_database,
    canary_in_exported_span,
    chat_unredacted,
    token_in_log,
    forgets_half,
)
"""All of them."""


def serve() -> None:
    """Serve the copilot with the mistake that the variable ``COPILOT_MISTAKE`` names.

    So that one suite can meet every mistake: each scenario names its own under ``env``.
    """
    named = {mistake.__name__: mistake for mistake in PLANTED}
    bot.serve(named[os.environ["COPILOT_MISTAKE"]])
