"""How an agent is reached: what it may be, how it travels, how it is talked to."""

from evalkit.agents.conversation import BadReplyError, Conversation
from evalkit.agents.langgraph import langgraph
from evalkit.agents.reference import AgentRef, import_agent, refer_to

__all__ = ["AgentRef", "BadReplyError", "Conversation", "import_agent", "langgraph", "refer_to"]
