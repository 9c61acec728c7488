"""The GitHub-shaped half of the stub: REST v3 below `/api/v3`, as GitHub Enterprise has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bailiwick.testing.forge_server_state import (
    ForgeAccount,
    ForgeApiError,
    ForgeApiReply,
    ForgeApiRequest,
    ForgeCheckRun,
    ForgeComment,
    ForgeIssue,
    Forgery,
    Hosted,
    Json,
    Routes,
)

API = "/api/v3"
REPO = rf"{API}/repos/(?P<owner>[^/]+)/(?P<name>[^/]+)"
LIMIT = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4999"}


def _user(account: ForgeAccount) -> Json:
    return {"login": account.login, "id": account.id, "type": "Bot" if account.bot else "User"}


def _me(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    if ask.account is None:
        raise ForgeApiError(401, "Requires authentication")
    if ask.account.installation:
        raise ForgeApiError(403, "Resource not accessible by integration")
    headers = {**LIMIT, "x-oauth-scopes": ask.account.scopes}
    if ask.account.expires:
        headers["github-authentication-token-expiration"] = ask.account.expires
    return ForgeApiReply(200, _user(ask.account), headers)


def _repo_of(forgery: Forgery, hosted: Hosted, account: ForgeAccount | None) -> Json:
    right = forgery.right(account, hosted.name)
    rights = {"admin": right == "admin", "push": right in ("admin", "write"), "pull": True}
    return {
        "id": 1,
        "name": hosted.name.partition("/")[2],
        "full_name": hosted.name,
        "private": True,
        "owner": {"login": hosted.owner},
        "default_branch": hosted.default_branch,
        "archived": hosted.archived,
        "permissions": rights,
        "fork": bool(hosted.fork_of),
        "html_url": f"{forgery.url}/{hosted.name}",
        **({"parent": {"full_name": hosted.fork_of}} if hosted.fork_of else {}),
    }


def _repository(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    return ForgeApiReply(200, _repo_of(forgery, forgery.find(ask.account, ask.repository), ask.account), LIMIT)


def _branch(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    head = hosted.head(ask.names["branch"])
    if not head:
        raise ForgeApiError(404, "Branch not found")
    return ForgeApiReply(200, {"name": ask.names["branch"], "commit": {"sha": head}, "protected": hosted.protected})


def _protection(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository, "admin")
    if not hosted.protected:
        raise ForgeApiError(404, "Branch not protected")
    return ForgeApiReply(200, {"required_pull_request_reviews": {"required_approving_review_count": hosted.approvals}})


def _rules(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    if not hosted.protected:
        return ForgeApiReply(200, [])
    rule = {"type": "pull_request", "parameters": {"required_approving_review_count": hosted.approvals}}
    return ForgeApiReply(200, [rule])


def _fork(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    if ask.account is None or ask.account.installation:
        raise ForgeApiError(403, "Resource not accessible by integration")
    name = f"{ask.account.login}/{ask.names['name']}"
    if name not in forgery.repositories:
        path = hosted.path.parent.parent / f"{name}.git"
        path.parent.mkdir(parents=True, exist_ok=True)
        hosted.git("clone", "-q", "--bare", str(hosted.path), str(path))
        made = Hosted(name, path, forgery.clock, hosted.name)
        made.git("config", "http.receivepack", "true")
        forgery.repositories[name] = made
    return ForgeApiReply(202, _repo_of(forgery, forgery.repositories[name], ask.account))


def _issue_of(forgery: Forgery, hosted: Hosted, ticket: ForgeIssue) -> Json:
    return {
        "id": 5000 + ticket.number,
        "number": ticket.number,
        "title": ticket.title,
        "body": ticket.body,
        "state": ticket.state,
        "user": _user(ticket.author),
        "created_at": ticket.at,
        "updated_at": ticket.at,
        "labels": [{"name": name} for name in ticket.labels],
        "comments": len(ticket.comments),
        "html_url": f"{forgery.url}/{hosted.name}/issues/{ticket.number}",
    }


def _ticket(forgery: Forgery, ask: ForgeApiRequest, *, pull: bool = False) -> tuple[Hosted, ForgeIssue]:
    hosted = forgery.find(ask.account, ask.repository)
    ticket = hosted.tickets.get(int(ask.names["number"]))
    if ticket is None or (pull and not ticket.head):
        raise ForgeApiError(404, "Not Found")
    return hosted, ticket


def _issue(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    return ForgeApiReply(200, _issue_of(forgery, *_ticket(forgery, ask)))


def _pull_of(forgery: Forgery, hosted: Hosted, ticket: ForgeIssue) -> Json:
    source = forgery.repositories.get(ticket.head_repo, hosted)
    head = {
        "ref": ticket.head,
        "sha": source.head(ticket.head),
        "label": f"{source.owner}:{ticket.head}",
        "repo": {"full_name": source.name, "owner": {"login": source.owner}},
    }
    return {
        **_issue_of(forgery, hosted, ticket),
        "draft": ticket.draft,
        "merged_at": ticket.merged_at or None,
        "merged": bool(ticket.merged_at),
        "mergeable": source is hosted and hosted.mergeable(ticket),
        "html_url": f"{forgery.url}/{hosted.name}/pull/{ticket.number}",
        "head": head,
        "base": {"ref": ticket.base, "sha": hosted.head(ticket.base)},
    }


def _pulls(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    owner, _, branch = ask.query.get("head", "").rpartition(":")
    state = ask.query.get("state", "open")
    found = [
        _pull_of(forgery, hosted, one)
        for one in hosted.tickets.values()
        if one.head
        and state in ("all", one.state)
        and branch in ("", one.head)
        and owner in ("", (one.head_repo or hosted.name).partition("/")[0])
    ]
    return ForgeApiReply(200, _page(ask, found))


def _invalid(message: str) -> ForgeApiError:
    detail = {"resource": "PullRequest", "code": "custom", "message": message}
    return ForgeApiError(422, "Validation Failed", errors=[detail])


def _open(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    body = ask.body
    owner, _, branch = str(body.get("head", "")).rpartition(":")
    source = forgery.repositories.get(f"{owner or hosted.owner}/{ask.names['name']}")
    if source is None or not source.head(branch):
        raise _invalid("head: invalid")
    if source is hosted:
        forgery.find(ask.account, ask.repository, "write")
    if not hosted.head(str(body.get("base"))):
        raise _invalid("base: invalid")
    if body.get("draft") and not hosted.drafts:
        raise ForgeApiError(422, "Draft pull requests are not supported in this repository.")
    if any(one.head == branch and one.state == "open" for one in hosted.tickets.values()):
        raise _invalid(f"A pull request already exists for {owner or hosted.owner}:{branch}.")
    if hosted.head(str(body["base"])) == source.head(branch):
        raise _invalid(f"No commits between {body['base']} and {branch}")
    if len(str(body.get("body") or "")) > 65_536:
        raise _invalid("body is too long (maximum is 65536 characters)")
    assert ask.account is not None  # noqa: S101 - who may see the repository has an account
    made = hosted.new_pull(str(body["title"]), str(body.get("body") or ""), ask.account)
    made.head, made.head_repo, made.base = branch, source.name, str(body["base"])
    made.draft = bool(body.get("draft"))
    return ForgeApiReply(201, _pull_of(forgery, hosted, hosted.open_pull(made)))


def _change(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted, ticket = _ticket(forgery, ask, pull=True)
    forgery.find(ask.account, ask.repository, "write" if ticket.author is not ask.account else "read")
    ticket.title = str(ask.body.get("title", ticket.title))
    ticket.body = str(ask.body.get("body", ticket.body))
    return ForgeApiReply(200, _pull_of(forgery, hosted, ticket))


def _pull(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    return ForgeApiReply(200, _pull_of(forgery, *_ticket(forgery, ask, pull=True)))


def _merge(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    raise ForgeApiError(403, "Resource not accessible by personal access token")


def _label(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    forgery.find(ask.account, ask.repository, "write")
    _, ticket = _ticket(forgery, ask)
    ticket.labels += [name for name in ask.body.get("labels", []) if name not in ticket.labels]
    return ForgeApiReply(200, [{"name": name} for name in ticket.labels])


def _note_of(note: ForgeComment) -> Json:
    out: dict[str, Json] = {"id": note.id, "user": _user(note.author), "body": note.body}
    if note.state:
        return {**out, "state": note.state, "submitted_at": note.at}
    return {**out, "created_at": note.at, "updated_at": note.at, "path": note.path or None, "line": note.line}


def _notes(pick: Callable[[ForgeIssue], list[ForgeComment]]) -> Callable[[Forgery, ForgeApiRequest], ForgeApiReply]:
    def answer(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
        _, ticket = _ticket(forgery, ask)
        since = ask.query.get("since", "")
        return ForgeApiReply(200, _page(ask, [_note_of(note) for note in pick(ticket) if note.at >= since]))

    return answer


def _comment(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted, ticket = _ticket(forgery, ask)
    assert ask.account is not None  # noqa: S101 - who may see the repository has an account
    return ForgeApiReply(201, _note_of(hosted.say(ticket.number, ask.account, str(ask.body["body"]))))


def _page(ask: ForgeApiRequest, items: Sequence[Json]) -> list[Json]:
    size, page = int(ask.query.get("per_page", 30)), int(ask.query.get("page", 1))
    return list(items[(page - 1) * size : page * size])


def _check_of(check: ForgeCheckRun) -> Json:
    done = check.outcome not in ("queued", "in_progress")
    return {
        "name": check.name,
        "status": "completed" if done else check.outcome,
        "conclusion": check.outcome if done else None,
        "html_url": "",
        "output": {"title": "", "summary": check.summary},
    }


def _check_runs(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    checks = forgery.find(ask.account, ask.repository).checks.get(ask.names["sha"], [])
    runs = [_check_of(check) for check in checks if check.run]
    return ForgeApiReply(200, {"total_count": len(runs), "check_runs": _page(ask, runs)})


def _status(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    checks = forgery.find(ask.account, ask.repository).checks.get(ask.names["sha"], [])
    rows = [{"context": c.name, "state": c.outcome, "description": c.summary} for c in checks if not c.run]
    return ForgeApiReply(200, {"state": "pending", "statuses": rows})


ROUTES: Routes = [
    ("GET", rf"{API}/user", _me),
    ("GET", REPO, _repository),
    ("GET", rf"{REPO}/branches/(?P<branch>[^/]+)", _branch),
    ("GET", rf"{REPO}/branches/(?P<branch>[^/]+)/protection", _protection),
    ("GET", rf"{REPO}/rules/branches/(?P<branch>[^/]+)", _rules),
    ("POST", rf"{REPO}/forks", _fork),
    ("GET", rf"{REPO}/issues/(?P<number>\d+)", _issue),
    ("GET", rf"{REPO}/issues/(?P<number>\d+)/comments", _notes(lambda ticket: ticket.comments)),
    ("POST", rf"{REPO}/issues/(?P<number>\d+)/comments", _comment),
    ("POST", rf"{REPO}/issues/(?P<number>\d+)/labels", _label),
    ("GET", rf"{REPO}/pulls", _pulls),
    ("POST", rf"{REPO}/pulls", _open),
    ("GET", rf"{REPO}/pulls/(?P<number>\d+)", _pull),
    ("PATCH", rf"{REPO}/pulls/(?P<number>\d+)", _change),
    ("PUT", rf"{REPO}/pulls/(?P<number>\d+)/merge", _merge),
    ("GET", rf"{REPO}/pulls/(?P<number>\d+)/reviews", _notes(lambda ticket: ticket.reviews)),
    ("GET", rf"{REPO}/pulls/(?P<number>\d+)/comments", _notes(lambda ticket: ticket.lines)),
    ("GET", rf"{REPO}/commits/(?P<sha>[0-9a-f]+)/check-runs", _check_runs),
    ("GET", rf"{REPO}/commits/(?P<sha>[0-9a-f]+)/status", _status),
]
