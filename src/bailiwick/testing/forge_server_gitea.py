"""The Gitea-shaped half of the stub: REST v1 below `/api/v1`, as Gitea and Forgejo have it."""

from __future__ import annotations

from collections.abc import Sequence

from bailiwick.testing.forge_server_state import (
    ForgeAccount,
    ForgeApiError,
    ForgeApiReply,
    ForgeApiRequest,
    ForgeComment,
    ForgeIssue,
    Forgery,
    Hosted,
    Json,
    Routes,
)

API = "/api/v1"
REPO = rf"{API}/repos/(?P<owner>[^/]+)/(?P<name>[^/]+)"


def _user(account: ForgeAccount) -> Json:
    return {"id": account.id, "login": account.login, "username": account.login}


def _me(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    if ask.account is None:
        raise ForgeApiError(401, "token is required")
    return ForgeApiReply(200, _user(ask.account))


def _repo_of(forgery: Forgery, hosted: Hosted, account: ForgeAccount | None) -> Json:
    right = forgery.right(account, hosted.name)
    return {
        "id": 1,
        "name": hosted.name.partition("/")[2],
        "full_name": hosted.name,
        "owner": {"login": hosted.owner},
        "default_branch": hosted.default_branch,
        "archived": hosted.archived,
        "fork": bool(hosted.fork_of),
        "permissions": {"admin": right == "admin", "push": right in ("admin", "write"), "pull": True},
    }


def _repository(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    return ForgeApiReply(200, _repo_of(forgery, forgery.find(ask.account, ask.repository), ask.account))


def _branch(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    head = hosted.head(ask.names["branch"])
    if not head:
        raise ForgeApiError(404, "The target couldn't be found.")
    may = forgery.right(ask.account, hosted.name) in ("write", "admin")
    return ForgeApiReply(
        200,
        {
            "name": ask.names["branch"],
            "commit": {"id": head},
            "protected": hosted.protected,
            "required_approvals": hosted.approvals,
            "user_can_push": may and not hosted.protected,
            "user_can_merge": may,
        },
    )


def _fork(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    assert ask.account is not None  # noqa: S101 - who may see the repository has an account
    name = f"{ask.account.login}/{ask.names['name']}"
    if name in forgery.repositories:
        raise ForgeApiError(409, "The repository with the same name already exists.")
    path = hosted.path.parent.parent / f"{name}.git"
    path.parent.mkdir(parents=True, exist_ok=True)
    hosted.git("clone", "-q", "--bare", str(hosted.path), str(path))
    made = Hosted(name, path, forgery.clock, hosted.name)
    made.git("config", "http.receivepack", "true")
    forgery.repositories[name] = made
    return ForgeApiReply(202, _repo_of(forgery, made, ask.account))


def _ticket(forgery: Forgery, ask: ForgeApiRequest, *, pull: bool = False) -> tuple[Hosted, ForgeIssue]:
    hosted = forgery.find(ask.account, ask.repository)
    ticket = hosted.tickets.get(int(ask.names["number"]))
    if ticket is None or (pull and not ticket.head):
        raise ForgeApiError(404, "The target couldn't be found.")
    return hosted, ticket


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


def _issue(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    return ForgeApiReply(200, _issue_of(forgery, *_ticket(forgery, ask)))


def _pull_of(forgery: Forgery, hosted: Hosted, ticket: ForgeIssue) -> Json:
    source = forgery.repositories.get(ticket.head_repo, hosted)
    repo = {"full_name": source.name, "owner": {"login": source.owner}}
    return {
        **_issue_of(forgery, hosted, ticket),
        "draft": ticket.title.lower().startswith(("wip:", "[wip]")),
        "merged": bool(ticket.merged_at),
        "merged_at": ticket.merged_at or None,
        "mergeable": source is hosted and hosted.mergeable(ticket),
        "merge_base": hosted.merge_base(ticket),
        "html_url": f"{forgery.url}/{hosted.name}/pulls/{ticket.number}",
        "head": {"ref": ticket.head, "label": ticket.head, "sha": source.head(ticket.head), "repo": repo},
        "base": {"ref": ticket.base, "label": ticket.base, "sha": hosted.head(ticket.base)},
    }


def _pulls(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    state = ask.query.get("state", "open")
    found = [one for one in hosted.tickets.values() if one.head and state in ("all", one.state)]
    return ForgeApiReply(200, _page(ask, [_pull_of(forgery, hosted, one) for one in found]))


def _open(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    body = ask.body
    owner, _, branch = str(body.get("head", "")).rpartition(":")
    source = forgery.repositories.get(f"{owner or hosted.owner}/{ask.names['name']}")
    if source is None or not source.head(branch) or not hosted.head(str(body.get("base"))):
        raise ForgeApiError(404, "The target couldn't be found.")
    if source is hosted:
        forgery.find(ask.account, ask.repository, "write")
    if any(one.head == branch and one.state == "open" for one in hosted.tickets.values()):
        raise ForgeApiError(409, f"pull request already exists for these targets [head: {branch}]")
    if hosted.head(str(body["base"])) == source.head(branch):
        raise ForgeApiError(422, "there are no changes between the head and the base")
    assert ask.account is not None  # noqa: S101 - who may see the repository has an account
    made = hosted.new_pull(str(body["title"]), str(body.get("body") or ""), ask.account)
    made.head, made.head_repo, made.base = branch, source.name, str(body["base"])
    return ForgeApiReply(201, _pull_of(forgery, hosted, hosted.open_pull(made)))


def _change(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted, ticket = _ticket(forgery, ask, pull=True)
    forgery.find(ask.account, ask.repository, "write" if ticket.author is not ask.account else "read")
    ticket.title = str(ask.body.get("title", ticket.title))
    ticket.body = str(ask.body.get("body", ticket.body))
    return ForgeApiReply(201, _pull_of(forgery, hosted, ticket))


def _pull(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    return ForgeApiReply(200, _pull_of(forgery, *_ticket(forgery, ask, pull=True)))


def _merge(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    raise ForgeApiError(403, "user should have permission to merge")


def _labels(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository)
    return ForgeApiReply(200, _page(ask, [{"id": number, "name": name} for name, number in hosted.labels.items()]))


def _make_label(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository, "write")
    name = str(ask.body["name"])
    hosted.labels[name] = 70 + len(hosted.labels)
    return ForgeApiReply(201, {"id": hosted.labels[name], "name": name, "color": ask.body.get("color")})


def _label(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted = forgery.find(ask.account, ask.repository, "write")
    _, ticket = _ticket(forgery, ask)
    names = {number: name for name, number in hosted.labels.items()}
    wanted = ask.body.get("labels", [])
    if any(number not in names for number in wanted):
        raise ForgeApiError(404, "The target couldn't be found.")
    ticket.labels += [names[number] for number in wanted if names[number] not in ticket.labels]
    return ForgeApiReply(200, [{"name": name} for name in ticket.labels])


def _note_of(note: ForgeComment) -> Json:
    out: dict[str, Json] = {"id": note.id, "user": _user(note.author), "body": note.body}
    if note.state:
        return {**out, "state": note.state, "submitted_at": note.at}
    return {**out, "created_at": note.at, "updated_at": note.at, "path": note.path, "position": note.line}


def _comments(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    _, ticket = _ticket(forgery, ask)
    since = ask.query.get("since", "")
    return ForgeApiReply(200, _page(ask, [_note_of(note) for note in ticket.comments if note.at >= since]))


def _comment(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    hosted, ticket = _ticket(forgery, ask)
    assert ask.account is not None  # noqa: S101 - who may see the repository has an account
    return ForgeApiReply(201, _note_of(hosted.say(ticket.number, ask.account, str(ask.body["body"]))))


def _reviews(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    """Remarks on lines belong to a review there: the stub keeps them in one of its own, the last."""
    _, ticket = _ticket(forgery, ask, pull=True)
    found = [{**_note_of(note), "comments_count": 0} for note in ticket.reviews]
    if ticket.lines:
        first = ticket.lines[0]
        found.append(
            {
                "id": 1,
                "user": _user(first.author),
                "body": "",
                "state": "COMMENT",
                "submitted_at": first.at,
                "comments_count": len(ticket.lines),
            }
        )
    return ForgeApiReply(200, _page(ask, found))


def _review_lines(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    _, ticket = _ticket(forgery, ask, pull=True)
    return ForgeApiReply(
        200, _page(ask, [_note_of(note) for note in ticket.lines] if ask.names["review"] == "1" else [])
    )


def _page(ask: ForgeApiRequest, items: Sequence[Json]) -> list[Json]:
    size, page = min(int(ask.query.get("limit", 30)), 50), int(ask.query.get("page", 1))
    return list(items[(page - 1) * size : page * size])


def _status(forgery: Forgery, ask: ForgeApiRequest) -> ForgeApiReply:
    checks = forgery.find(ask.account, ask.repository).checks.get(ask.names["sha"], [])
    rows = [{"context": c.name, "status": c.outcome, "description": c.summary, "target_url": ""} for c in checks]
    return ForgeApiReply(200, {"state": "pending", "statuses": rows, "total_count": len(rows)})


ROUTES: Routes = [
    ("GET", rf"{API}/user", _me),
    ("GET", REPO, _repository),
    ("GET", rf"{REPO}/branches/(?P<branch>[^/]+)", _branch),
    ("POST", rf"{REPO}/forks", _fork),
    ("GET", rf"{REPO}/issues/(?P<number>\d+)", _issue),
    ("GET", rf"{REPO}/issues/(?P<number>\d+)/comments", _comments),
    ("POST", rf"{REPO}/issues/(?P<number>\d+)/comments", _comment),
    ("POST", rf"{REPO}/issues/(?P<number>\d+)/labels", _label),
    ("GET", rf"{REPO}/labels", _labels),
    ("POST", rf"{REPO}/labels", _make_label),
    ("GET", rf"{REPO}/pulls", _pulls),
    ("POST", rf"{REPO}/pulls", _open),
    ("GET", rf"{REPO}/pulls/(?P<number>\d+)", _pull),
    ("PATCH", rf"{REPO}/pulls/(?P<number>\d+)", _change),
    ("POST", rf"{REPO}/pulls/(?P<number>\d+)/merge", _merge),
    ("GET", rf"{REPO}/pulls/(?P<number>\d+)/reviews", _reviews),
    ("GET", rf"{REPO}/pulls/(?P<number>\d+)/reviews/(?P<review>\d+)/comments", _review_lines),
    ("GET", rf"{REPO}/commits/(?P<sha>[0-9a-f]+)/status", _status),
]
