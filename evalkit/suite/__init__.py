"""The suite file: its models, how it is read and checked, its hash and its JSON Schema.

Public names are re-exported here. Grader and tool names can only be checked by
layers that know them (see :func:`grader_problems` and :func:`tool_problems`);
running a suite is not done here either.
"""

from __future__ import annotations

from evalkit.suite.bans import Forbid, ForbiddenCall, ForbiddenText
from evalkit.suite.delivery import Delivery, ReplySource, filled
from evalkit.suite.expectations import (
    CallExpect,
    ComponentExpect,
    Count,
    DatabaseExpect,
    ErrorsExpect,
    Expect,
    FileExpect,
    HttpExpect,
    PathExpect,
    ReplyExpect,
    RetrieverExpect,
    RowChanges,
    TextExpect,
    Times,
    ToolLimits,
    ToolsExpect,
)
from evalkit.suite.fixtures import (
    Canary,
    Clock,
    Fixtures,
    HttpFixture,
    HttpResponse,
    LiveFault,
    Network,
)
from evalkit.suite.hashing import content_hash, with_versions
from evalkit.suite.journey import (
    AdvanceTurn,
    DeliverTurn,
    RedeliverTurn,
    RestartTurn,
    Turn,
    UserTurn,
)
from evalkit.suite.known_names import grader_problems, names_tools, tool_problems
from evalkit.suite.loading import parse_suite, suite_from_data
from evalkit.suite.model_script import (
    FaultStep,
    JsonStep,
    ModelScript,
    RefusalStep,
    Script,
    Step,
    TextStep,
    ToolsStep,
    ToolUse,
)
from evalkit.suite.models import (
    AgentEntry,
    Budget,
    GraderUse,
    HttpAgent,
    Price,
    Quality,
    Scenario,
    Suite,
)
from evalkit.suite.records import suite_from_records
from evalkit.suite.schema import suite_json_schema

__all__ = [
    "AdvanceTurn",
    "AgentEntry",
    "Budget",
    "CallExpect",
    "Canary",
    "Clock",
    "ComponentExpect",
    "Count",
    "DatabaseExpect",
    "DeliverTurn",
    "Delivery",
    "ErrorsExpect",
    "Expect",
    "FaultStep",
    "FileExpect",
    "Fixtures",
    "Forbid",
    "ForbiddenCall",
    "ForbiddenText",
    "GraderUse",
    "HttpAgent",
    "HttpExpect",
    "HttpFixture",
    "HttpResponse",
    "JsonStep",
    "LiveFault",
    "ModelScript",
    "Network",
    "PathExpect",
    "Price",
    "Quality",
    "RedeliverTurn",
    "RefusalStep",
    "ReplyExpect",
    "ReplySource",
    "RestartTurn",
    "RetrieverExpect",
    "RowChanges",
    "Scenario",
    "Script",
    "Step",
    "Suite",
    "TextExpect",
    "TextStep",
    "Times",
    "ToolLimits",
    "ToolUse",
    "ToolsExpect",
    "ToolsStep",
    "Turn",
    "UserTurn",
    "content_hash",
    "filled",
    "grader_problems",
    "names_tools",
    "parse_suite",
    "suite_from_data",
    "suite_from_records",
    "suite_json_schema",
    "tool_problems",
    "with_versions",
]
