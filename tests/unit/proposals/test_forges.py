"""What forges answer, and what each answer comes to. Nothing is retried here; nothing foreign is trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.proposals.forges.gitea import Gitea
from bailiwick.proposals.forges.github import GitHub
from bailiwick.proposals.forges.port import Forge, ForgeFailed, ForgeRepository, PullDraft
from bailiwick.proposals.forges.reading import merge_alone, moment
from bailiwick.proposals.forges.rest import Network
from bailiwick.proposals.model import IssueRef, parse_issue
from bailiwick.testing.forge_server import ForgeServer, Trip
from bailiwick.testing.forge_server_state import ForgeCheckRun
from tests.unit.proposals.stage import NAME, TOKEN, make_site, run


@pytest.fixture(params=["github", "gitea"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ForgeServer]:
    """A forge with one repository that the agent may write to."""
    with ForgeServer(tmp_path, request.param) as forge:
        agent = forge.forgery.account("agent", TOKEN)
        forge.add(NAME, (agent, "write"))
        yield forge


def _client(server: ForgeServer, token: str | None = TOKEN, total: float = 5.0) -> Forge:
    kind = GitHub if server.flavour == "github" else Gitea
    return kind.open(make_site(server, ManualClock(1_767_000_000.0)), token, Network(total=total))


def _fails(server: ForgeServer, forge: Forge | None = None) -> ForgeFailed:
    client = forge or _client(server)

    async def go() -> None:
        try:
            await client.default_branch()
        finally:
            await client.close()

    with pytest.raises(ForgeFailed) as failed:
        run(go())
    return failed.value


@pytest.mark.parametrize(
    ("status", "headers", "message", "kind", "wait"),
    [
        (401, {}, "Bad credentials", "auth", None),
        (403, {}, "Resource not accessible", "permission", None),
        (403, {"retry-after": "30"}, "slow down", "rate_limit", 30.0),
        (
            403,
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767000090"},
            "API rate limit exceeded",
            "rate_limit",
            90.0,
        ),
        (403, {}, "You have exceeded a secondary rate limit", "rate_limit", None),
        (429, {"retry-after": "5"}, "", "rate_limit", 5.0),
        (404, {}, "Not Found", "not_found", None),
        (410, {}, "Gone", "not_found", None),
        (409, {}, "conflict", "conflict", None),
        (422, {}, "Validation Failed", "invalid", None),
        (500, {}, "oops", "unavailable", None),
        (503, {"retry-after": "7"}, "", "unavailable", 7.0),
    ],
)
def test_each_status_has_its_class(
    server: ForgeServer, status: int, headers: dict[str, str], message: str, kind: str, wait: float | None
) -> None:
    """The engine decides by the class and waits as long as the forge says; each is one request."""
    server.faults.append(Trip("", status, body={"message": message}, headers=headers))
    error = _fails(server)
    assert (error.kind, error.retry_after, error.status) == (kind, wait, status)
    assert message in error.what
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("garbage", "malformed"), ("flood", "too_large"), ("hang", "timeout"), ("drop", "unreachable")],
)
def test_each_way_to_misbehave_has_its_class(server: ForgeServer, fault: str, kind: str) -> None:
    """A proxy's page, a hundred megabytes, silence, a cut line: none of them takes long or much memory."""
    server.faults.append(Trip("", fault))  # type: ignore[arg-type]
    error = _fails(server, _client(server, total=0.5 if fault == "hang" else 5.0))
    assert error.kind == kind


def test_a_forge_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    """The machine is offline, or the address is wrong."""
    with ForgeServer(tmp_path, "github") as server:
        client = _client(server)
    assert _fails(server, client).kind == "unreachable"


def test_no_other_host_ever_gets_the_token(server: ForgeServer, tmp_path: Path) -> None:
    """A redirect is how a token walks away."""
    with ForgeServer(tmp_path / "other", server.flavour) as other:
        server.faults.append(Trip("", 302, headers={"location": f"{other.url}/steal"}))
        assert _fails(server).kind == "moved"
        assert other.seen == []


def test_a_renamed_repository_is_followed_on_the_same_host_when_reading(server: ForgeServer) -> None:
    """Forges answer 301 for years after a rename; writing there is refused with the new place."""
    api = "/api/v3" if server.flavour == "github" else "/api/v1"
    server.faults.append(Trip("", 301, times=1, headers={"location": f"{api}/repos/{NAME}"}))
    client = _client(server)
    assert run(client.default_branch()) == "main"
    server.faults.append(Trip("POST", 307, times=1, headers={"location": f"{api}/repos/{NAME}"}))
    with pytest.raises(ForgeFailed) as failed:
        run(client.open_or_update(PullDraft("agent/x", base="main", title="t", body="b")))
    assert failed.value.kind == "moved"
    run(client.close())


def test_a_wrong_token_and_a_foreign_repository_are_told_apart(server: ForgeServer) -> None:
    """Two errors, two things to do."""
    assert _fails(server, _client(server, "wrong")).kind == "auth"
    stranger = server.forgery.account("stranger", "another")
    assert _fails(server, _client(server, stranger.token)).kind == "not_found"


def test_an_error_shows_what_the_forge_said_as_plain_text(server: ForgeServer) -> None:
    """A forge's words are data: no terminal sequence of theirs reaches a person."""
    server.faults.append(Trip("", 422, body={"message": "\x1b[31mbad\x1b[0m\n" + "x" * 9000}))
    error = _fails(server)
    assert "\x1b" not in error.what
    assert len(error.what) < 500


def test_an_issue_is_fetched_with_its_first_comments(server: ForgeServer) -> None:
    """What the agent is asked for is what people wrote there."""
    hosted = server.forgery.repositories[NAME]
    pat = server.forgery.account("pat", "p")
    made = hosted.open_issue("Discount is wrong", "It is 180.", pat)
    for number in range(30):
        hosted.say(made.number, pat, f"comment {number}")
    client = _client(server)
    issue = run(client.fetch_issue(IssueRef(made.number)))
    assert (issue.title, issue.body, issue.author) == ("Discount is wrong", "It is 180.", "pat")
    assert issue.comments[0] == ("pat", "comment 0")
    assert len(issue.comments) == 20
    assert issue.url.endswith(f"/issues/{made.number}")
    with pytest.raises(ForgeFailed) as failed:
        run(client.fetch_issue(IssueRef(99)))
    assert failed.value.kind == "not_found"
    run(client.close())


def test_more_than_one_page_is_read_and_the_number_of_pages_is_bounded(server: ForgeServer) -> None:
    """A thread of two hundred comments is read whole; one of a million would end."""
    hosted = server.forgery.repositories[NAME]
    pat = server.forgery.account("pat", "p")
    made = hosted.open_issue("t", "b", pat)
    for number in range(120):
        hosted.say(made.number, pat, f"comment {number}")
    made.head = made.base = "main"
    client = _client(server)
    heard = run(client.remarks(made.number, 0.0))
    assert [one.text for one in heard] == [f"comment {number}" for number in range(120)]
    server.seen.clear()
    for number in range(1500):
        hosted.say(made.number, pat, f"more {number}")
    run(client.remarks(made.number, 0.0))
    assert len([one for one in server.seen if one.path.endswith(f"issues/{made.number}/comments")]) == 10
    run(client.close())


def test_red_checks_are_those_that_say_something_about_the_change(server: ForgeServer) -> None:
    """A cancelled job or one that still runs is no reason to change code."""
    sha = "a" * 40
    outcomes = ["failure", "success", "cancelled", "in_progress", "timed_out", "neutral"]
    rows = [ForgeCheckRun(f"job {one}", one, "boom") for one in outcomes] if server.flavour == "github" else []
    rows += [ForgeCheckRun("ci", "failure", "it broke", run=False), ForgeCheckRun("ci", "success", run=False)]
    rows += [ForgeCheckRun("lint", "pending", run=False), ForgeCheckRun("types", "error", run=False)]
    server.forgery.repositories[NAME].checks[sha] = rows
    client = _client(server)
    found = [one.name for one in run(client.failed_checks(sha))]
    run(client.close())
    jobs = ["job failure", "job timed_out"] if server.flavour == "github" else []
    assert found == [*jobs, "ci", "types"]


def test_a_merge_by_the_agents_token_is_refused_by_the_stub(server: ForgeServer) -> None:
    """The stub has what our code must never call, and says no."""
    import httpx2

    api = "/api/v3" if server.flavour == "github" else "/api/v1"
    method = "PUT" if server.flavour == "github" else "POST"
    answer = httpx2.request(
        method,
        f"{server.url}{api}/repos/{NAME}/pulls/1/merge",
        headers={"authorization": f"Bearer {TOKEN}"},
        trust_env=False,
    )
    assert answer.status_code == 403


def test_a_pull_request_of_a_missing_branch_is_refused_in_words(server: ForgeServer) -> None:
    """The stub looks at git: a head that was never pushed is no head."""
    client = _client(server)
    with pytest.raises(ForgeFailed) as failed:
        run(client.open_or_update(PullDraft("agent/none", "main", "t", "b")))
    assert failed.value.kind in ("invalid", "not_found")
    run(client.close())


def test_an_installations_token_has_no_user_and_still_works(tmp_path: Path) -> None:
    """GitHub Actions' own token may not ask who it is."""
    with ForgeServer(tmp_path, "github") as server:
        robot = server.forgery.account("app", TOKEN, installation=True)
        server.add(NAME, (robot, "write"))
        server.faults.append(Trip("branches/main$", 200, body={"name": "main", "protected": False}))
        client = _client(server)
        access = run(client.check_access())
        assert (access.user, access.can_push) == ("", True)
        run(client.close())


def test_the_end_of_a_token_is_read(tmp_path: Path) -> None:
    """A token that ends tonight is worth a word before a week of work."""
    with ForgeServer(tmp_path, "github") as server:
        agent = server.forgery.account("agent", TOKEN, expires="2026-03-01 10:00:00 UTC")
        server.add(NAME, (agent, "write"))
        server.faults.append(Trip("branches/main$", 200, body={"name": "main", "protected": True}))
        client = _client(server)
        access = run(client.check_access())
        run(client.close())
        assert access.expires == moment("2026-03-01T10:00:00Z")


@pytest.mark.parametrize(
    ("push", "approvals", "admin", "protected", "said"),
    [
        (False, None, False, None, False),
        (True, None, False, False, True),
        (True, 1, False, True, False),
        (True, 0, False, True, True),
        (True, None, False, True, None),
        (True, None, False, None, None),
        (None, None, False, None, None),
        (True, 2, True, True, True),
    ],
)
def test_merge_rights_are_yes_no_or_unknown(
    push: bool | None, approvals: int | None, admin: bool, protected: bool | None, said: bool | None
) -> None:
    """Unknown is not no."""
    assert merge_alone(push, approvals, admin=admin, protected=protected) is said


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("412", IssueRef(412)),
        ("#412", IssueRef(412)),
        ("acme/shop#9", IssueRef(9, "acme", "shop")),
        ("https://github.com/acme/shop/issues/9", IssueRef(9, "acme", "shop", "https://github.com")),
        ("http://127.0.0.1:80/a/b/issues/3#issuecomment-1", IssueRef(3, "a", "b", "http://127.0.0.1:80")),
        ("notes/todo.md", None),
        ("acme/shop/9", None),
        ("0", None),
        ("#", None),
        ("https://user@evil/a/b/issues/3", None),
        ("fixes #1", None),
    ],
)
def test_an_issue_is_named_in_four_ways(text: str, ref: IssueRef | None) -> None:
    """Anything else is a file's name, or nothing."""
    assert parse_issue(text) == ref


def test_github_com_has_its_api_on_a_host_of_its_own() -> None:
    """Everybody else has it below their own address."""
    clock = ManualClock()
    public = GitHub.open(ForgeRepository("github", "github", "https://github.com", "a", "b", clock), TOKEN, Network())
    own = GitHub.open(ForgeRepository("ghe", "github", "https://git.example.org", "a", "b", clock), TOKEN, Network())
    assert (public.rest.base, own.rest.base) == ("https://api.github.com", "https://git.example.org/api/v3")
    assert TOKEN not in repr(public)
