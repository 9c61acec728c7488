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
    ScriptedUsage,
    Step,
    UseTool,
)
from bailiwick.testing.model_server.server import MODEL, ModelRequestSeen, ModelServer

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
    "ModelRequestSeen",
    "ModelServer",
    "Raw",
    "Say",
    "Scenario",
    "ScriptedUsage",
    "Step",
    "UseTool",
]
