"""A scripted model API on loopback in the dialects of Anthropic, OpenAI and Ollama, with their failures."""

from __future__ import annotations

from bailiwick.testing.model_server.script import (
    SCENARIOS,
    Babble,
    ByModel,
    Drip,
    Drop,
    Fail,
    FailMidway,
    Flood,
    Hang,
    Raw,
    Say,
    Scenario,
    Step,
    Tokens,
    UseTool,
)
from bailiwick.testing.model_server.server import MODEL, ModelServer, Seen

__all__ = [
    "MODEL",
    "SCENARIOS",
    "Babble",
    "ByModel",
    "Drip",
    "Drop",
    "Fail",
    "FailMidway",
    "Flood",
    "Hang",
    "ModelServer",
    "Raw",
    "Say",
    "Scenario",
    "Seen",
    "Step",
    "Tokens",
    "UseTool",
]
