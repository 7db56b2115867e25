"""``/sign-in`` and ``/sign-out``: a token for a cookie that pages are shown to."""

from __future__ import annotations

import html
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from cascade_runtime.vocabulary.errors import CascadeError
from collector.web.auth import SIGN_IN, SIGN_OUT
from collector.web.errors import BodyTooLarge, error_headers, status_of
from collector.web.sessions import COOKIE, HOURS, Sessions
from dashboard.shell.csp import OWN_REFERRER, page_policy
from dashboard.shell.paths import ROOT

_LARGEST_FORM = 4096


def sign_in_routes(sessions: Sessions) -> list[Route]:
    """The two routes."""

    async def form(request: Request) -> Response:
        if not sessions.needed or sessions.may(request.scope):
            return RedirectResponse(_next(request.query_params.get("next")), status_code=303)
        return _page(_next(request.query_params.get("next")))

    async def sign_in(request: Request) -> Response:
        fields = parse_qs((await _small(request)).decode("utf-8", "replace"))
        after = _next(fields.get("next", [""])[0])
        caller = request.client.host if request.client else "unknown"
        token = fields.get("token", [""])[0].strip()
        try:
            made = await run_in_threadpool(sessions.sign_in, token, caller)
        except CascadeError as error:
            return _page(after, error)
        answer = RedirectResponse(after, status_code=303)
        answer.set_cookie(
            COOKIE,
            made,
            max_age=HOURS * 3600,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def sign_out(request: Request) -> Response:
        sessions.sign_out(request.scope)
        answer = RedirectResponse(SIGN_IN, status_code=303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    return [
        Route(SIGN_IN, form, methods=["GET"]),
        Route(SIGN_IN, sign_in, methods=["POST"]),
        Route(SIGN_OUT, sign_out, methods=["POST"]),
    ]


async def _small(request: Request) -> bytes:
    """The form; it has no reason to be large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_FORM:
            raise BodyTooLarge("this form is too large", where=SIGN_IN, hint="send the token alone")
    return body


def _next(wanted: str | None) -> str:
    """Where to go afterwards: a page of ours, never another site's."""
    fits = wanted and wanted.startswith(ROOT) and not set(wanted) & set("\\\r\n")
    return str(wanted) if fits else ROOT


def _page(after: str, error: CascadeError | None = None) -> Response:
    problem = ""
    if error is not None:
        hint = f"<br>{html.escape(error.hint)}" if error.hint else ""
        problem = f'<p class="bad" role="alert">{html.escape(error.message)}{hint}</p>'
    text = _TEXT.replace("{problem}", problem).replace("{next}", html.escape(after, quote=True))
    headers = {
        "content-security-policy": page_policy().decode(),
        "referrer-policy": OWN_REFERRER,
    }
    if error is not None:
        told = error_headers(error)
        headers |= {name: told[name] for name in ("retry-after",) if name in told}
    status = 200 if error is None else status_of(error)
    return Response(text, status_code=status, headers=headers, media_type="text/html")


_TEXT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in - CASCADE Timelines</title>
<style>
:root { color-scheme: light dark; --bg: #f6f7f9; --raised: #fff; --fg: #1b1f24; --dim: #59636e;
  --line: #8b94a1; --accent: #2f5fb3; --on-accent: #fff; --bad: #c02032; }
@media (prefers-color-scheme: dark) { :root { --bg: #121417; --raised: #191c20; --fg: #e4e7eb;
  --dim: #a0a9b4; --line: #6d7886; --accent: #82aef0; --on-accent: #0d1726; --bad: #ff7b86; } }
body { margin: 0; background: var(--bg); color: var(--fg);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 400px; margin: 18vh auto 0; padding: 24px; }
h1 { margin: 0 0 4px; font-size: 18px; }
p { margin: 0 0 16px; color: var(--dim); }
p.bad { color: var(--bad); }
label { display: block; margin-bottom: 4px; font-weight: 600; }
input[type=password] { box-sizing: border-box; width: 100%; padding: 8px; border-radius: 4px;
  border: 1px solid var(--line); background: var(--raised); color: inherit; font: inherit; }
button { margin-top: 12px; padding: 7px 16px; border: 0; border-radius: 4px; font: inherit;
  background: var(--accent); color: var(--on-accent); cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 13px; }
</style>
</head>
<body>
<main>
<h1>CASCADE Timelines</h1>
<p>This collector asks who is there. A token that may read opens the pages for 12 hours.</p>
{problem}
<form method="post" action="/sign-in">
<input type="hidden" name="next" value="{next}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button>
</form>
<p style="margin-top:24px">No token? On the collector's machine:<br>
<code>cascade serve --new-token NAME --scope read</code></p>
</main>
</body>
</html>
"""
