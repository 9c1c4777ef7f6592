"""A new project: an agent to start from, a suite, and what is around them.

``kinds``     the agents that one can start from
``projects``  planning the files of a project, and making those that are missing
``templates`` the files, as text; the standard library's ``string.Template`` fills
              in names, and no other engine is needed

Nothing of the user's is ever overwritten.
"""

from __future__ import annotations

from evalkit.scaffolding.kinds import KINDS, Kind
from evalkit.scaffolding.projects import (
    PlannedFile,
    ProjectPlan,
    make_project,
    plan_project,
)

__all__ = ["KINDS", "Kind", "PlannedFile", "ProjectPlan", "make_project", "plan_project"]
