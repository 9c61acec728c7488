"""What an agent is told on each rung. The words are files in `bundled/prompts`; here they are only put together."""

from __future__ import annotations

from functools import cache

from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates

ROOT = BUNDLED_FILES / "prompts"
LEVELS = 3


@cache
def _templates() -> Templates:
    return Templates(ROOT)


def compose(plan: AttemptPlan, prompt: str, outputs: list[Json], *, contract: bool) -> str:
    """The text of one turn: the prompt itself, a question for the JSON alone, or the task put in other words.

    What was held against the answers of earlier models stands below the task.
    """
    if plan.feedback:
        prompt = f"{prompt}\n\n{plan.feedback}"
    values: dict[str, Json] = {"prompt": prompt, "outputs": outputs, "problem": plan.problem}
    if plan.rung == "reask" and outputs:
        return str(_templates().file("reask.md", values.__getitem__).value)
    if plan.level and outputs:
        name = f"reframe-{min(plan.level, LEVELS)}.md"
        return str(_templates().file(name, values.__getitem__).value)
    if contract and outputs:
        return prompt + str(_templates().file("contract.md", values.__getitem__).value)
    return prompt
