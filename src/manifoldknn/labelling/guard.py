"""Who may come in: only who knows the token, from the page itself, on this machine."""

from __future__ import annotations

import hmac
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Wraps an application: others get 403, and every answer strict headers.

    The token comes in the address once, and in a cookie from then on.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"manifoldknn-{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        why = self.refused(request)
        answer: Any = self._app
        if why:
            answer = PlainTextResponse(f"403: {why}\n", 403)

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                if not why and request.query_params.get("token"):
                    response = Response()
                    response.set_cookie(
                        self.cookie, self._token, httponly=True, samesite="strict", path="/"
                    )
                    added.append((b"set-cookie", response.headers["set-cookie"].encode()))
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await answer(scope, receive, with_headers)

    def refused(self, request: Request) -> str:
        """Return why a request is refused; "" if it is not."""
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if host not in self._hosts:
            return "this page is served to this machine only"
        if origin is not None and origin not in {f"http://{name}" for name in self._hosts}:
            return "the request comes from another page"
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return "the request comes from another page"
        told = request.query_params.get("token") or request.cookies.get(self.cookie) or ""
        if not hmac.compare_digest(told.encode(), self._token.encode()):
            return "open the address with its token, as the command printed it"
        return ""
