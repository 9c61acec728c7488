"""The stable codes of problems in input files. One line each, so that the reference can be made from this table."""

from __future__ import annotations

UNREADABLE = "BW101"
CHARACTERS = "BW102"
UNKNOWN_NODE = "BW103"
SYNTAX = "BW104"
DUPLICATE_KEY = "BW105"
TAG = "BW106"
NUMBER = "BW107"
TOO_DEEP = "BW108"
DOCUMENT = "BW109"
WRONG_TYPE = "BW110"
MISSING_FIELD = "BW111"
UNKNOWN_FIELD = "BW112"
UNKNOWN_KIND = "BW113"
YAML_1_1 = "BW114"
BAD_NAME = "BW120"
DUPLICATE_ID = "BW121"
NO_NEXT = "BW122"
UNREACHABLE = "BW123"
NO_END = "BW124"
PURE_CYCLE = "BW125"
SCOPE_EDGE = "BW126"
EXPORT = "BW127"
JOIN = "BW128"
TOO_MANY = "BW129"
MISSING_FILE = "BW130"
OUTSIDE = "BW131"
SPECIAL_FILE = "BW132"
PIN_TOO_LARGE = "BW133"
UNKNOWN_WORKFLOW = "BW134"
TEMPLATE = "BW140"
UNKNOWN_VARIABLE = "BW141"
UNREAD_OUTPUT = "BW142"
BAD_SCHEMA = "BW143"

MEANING = {
    UNREADABLE: "a file is missing, too large, not a regular file or can't be read",
    CHARACTERS: "text that is not UTF-8, or holds control characters",
    UNKNOWN_NODE: "an edge names a node that does not exist",
    SYNTAX: "YAML that can't be parsed",
    DUPLICATE_KEY: "a key is given twice in one mapping",
    TAG: "a YAML tag other than the core ones",
    NUMBER: "a number that JSON can't carry: not finite, or beyond 64 bits",
    TOO_DEEP: "nesting, aliases or size beyond what a hand-written file needs",
    DOCUMENT: "the file is not exactly one document with a mapping at its root",
    WRONG_TYPE: "a value of the wrong type or out of its bounds",
    MISSING_FIELD: "a required field is missing",
    UNKNOWN_FIELD: "a field that nothing reads",
    UNKNOWN_KIND: "a node type that neither Bailiwick nor an installed package provides",
    YAML_1_1: "a scalar that means something else with `version: 1`",
    BAD_NAME: "a name or an id with characters it can't have",
    DUPLICATE_ID: "two nodes with one id",
    NO_NEXT: "a node that has to lead somewhere and does not",
    UNREACHABLE: "a node that nothing leads to",
    NO_END: "nodes from which no end can be reached",
    PURE_CYCLE: "a cycle without any work in it",
    SCOPE_EDGE: "an edge into or out of a branch of a parallel or the body of a map",
    EXPORT: "an exported key that no branch writes, or that several write",
    JOIN: "`join` and `next` of one node differ, or a branch is empty",
    TOO_MANY: "more nodes or more problems than are looked at",
    MISSING_FILE: "a prompt or a script that is not there",
    OUTSIDE: "a path that leaves the workflow directory",
    SPECIAL_FILE: "a pipe, a device or something else that is not a regular file",
    PIN_TOO_LARGE: "more bytes than a run can be pinned to",
    UNKNOWN_WORKFLOW: "a called workflow that can't be found",
    TEMPLATE: "a template that can't be parsed",
    UNKNOWN_VARIABLE: "a template reads a name that nothing provides",
    UNREAD_OUTPUT: "an output that no node reads",
    BAD_SCHEMA: "a JSON Schema that is not valid",
}
"""What each code stands for."""
