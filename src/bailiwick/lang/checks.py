"""Every check of a workflow beyond its own fields, in one place."""

from __future__ import annotations

from collections.abc import Mapping

from bailiwick.lang.compile import Compiled
from bailiwick.lang.dataflow import DataFlow
from bailiwick.lang.fields import Findings
from bailiwick.lang.files import WorkflowFiles
from bailiwick.lang.flow import check_flow


def check(compiled: Compiled, files: WorkflowFiles, returns: Mapping[str, tuple[str, ...]], found: Findings) -> None:
    """Note every problem of a compiled workflow; `returns` holds what each called workflow gives back, by reference."""
    owners = check_flow(compiled, found)
    files.scan()
    flow = DataFlow(compiled, files, returns, found)
    flow.check(owners)
    compiled.reads = None if flow.dynamic else frozenset(flow.reads)
