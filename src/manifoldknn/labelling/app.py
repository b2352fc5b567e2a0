"""The page and its questions over HTTP: files of this folder, ``/api/NAME`` and an export."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from manifoldknn.labelling.desk import Desk
from manifoldknn.labelling.exchange import FORMATS
from manifoldknn.labelling.guard import Guard
from manifoldknn.labelling.journal import JournalError
from manifoldknn.labelling.rows import ForbiddenError

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_LARGEST = 64 << 20  # bytes of a question


def page_files() -> dict[str, tuple[str, str]]:
    """Return the files of the page by name: their kind and content."""
    found = {}
    for file in (resources.files(__package__) / "page").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _KINDS:
            found[file.name] = (_KINDS[suffix], file.read_text("utf-8"))
    return found


def make_app(desk: Desk, token: str, port: int) -> Guard:
    """Return the application, behind its guard."""
    files = page_files()

    async def page(request: Request) -> Response:
        name = request.path_params.get("name") or "page.html"
        if name not in files:  # nothing else can be had, wherever it is
            return Response("403: there is no such file\n", 403, media_type="text/plain")
        kind, content = files[name]
        return Response(content, media_type=kind)

    async def answer(request: Request) -> Response:
        if int(request.headers.get("content-length") or _LARGEST + 1) > _LARGEST:
            return _said("the request is longer than 64 MB, or does not say how long it is", 413)
        try:
            question = json.loads(await request.body())
            if not isinstance(question, dict):
                raise ValueError("a question is a JSON object")
            return await run_in_threadpool(
                lambda: JSONResponse(desk.call(request.path_params["name"], question))
            )
        except ForbiddenError as error:
            return _said(str(error), 403)
        except LookupError:
            return _said("there is no such question", 404)
        except JournalError as error:
            return _said(str(error), 507)
        except ValueError as error:
            return _said(str(error), 400)

    async def export(request: Request) -> Response:
        form = request.path_params["form"]
        if form not in FORMATS:
            return _said("there is no such format", 404)
        content = await run_in_threadpool(desk.export, form)
        headers = {"Content-Disposition": f'attachment; filename="labels.{form}"'}
        return Response(content, media_type=FORMATS[form], headers=headers)

    routes: list[Any] = [
        Route("/", page),
        Route("/api/{name}", answer, methods=["POST"]),
        Route("/labels.{form}", export),
        Route("/{name:path}", page),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _said(text: str, code: int) -> JSONResponse:
    return JSONResponse({"error": text}, code)
