"""Pages of the recordings that a gateway answers with.

In: requests of a browser.  Out: a page of links to the recordings, and the page of each of them.

Laws: only a browser on this machine is answered, unless `allow_anyone` says otherwise, and
`on_connect` is asked: recordings hold what people wrote. A page is made in a thread, so that a
large recording does not stop the answers.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from deltafold.contract.names import ProtocolName
from deltafold.errors.model_error import ModelError
from deltafold.gateway.admission import Admission
from deltafold.inspector import (
    first_difference,
    inspect_recording,
    make_index,
    make_page,
)
from deltafold.testing.recording import Recording

_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def inspect_routes(
    recordings: Mapping[str, tuple[ProtocolName, Recording]], admission: Admission | None
) -> list[Route]:
    """Return the routes `/inspect` and `/inspect/NAME`, the latter with `?diff=OTHER`.

    Args:
        recordings: recordings and their dialects, by name.
        admission: who may call; None answers everybody.
    """

    async def refused(request: Request) -> Response | None:
        if admission is None:
            return None
        try:
            admission.check_local(request)
            await admission.owner(request)
        except ModelError as error:
            return PlainTextResponse(error.message, error.status or 403, _HEADERS)
        return None

    async def index(request: Request) -> Response:
        links = {name: f"/inspect/{quote(name, safe='')}" for name in recordings}
        page = make_index("Recordings", links)
        return await refused(request) or HTMLResponse(page, headers=_HEADERS)

    async def show(request: Request) -> Response:
        refusal = await refused(request)
        if refusal is not None:
            return refusal
        names = [str(request.path_params["name"]), *request.query_params.getlist("diff")[:1]]
        unknown = [name for name in names if name not in recordings]
        if unknown:
            return PlainTextResponse("there is no such recording", 404, _HEADERS)
        return HTMLResponse(await run_in_threadpool(page_of, names), headers=_HEADERS)

    def page_of(names: list[str]) -> str:
        shown = [
            inspect_recording(recording, dialect, name)
            for name in names
            for dialect, recording in [recordings[name]]
        ]
        return make_page(shown, first_difference(*shown) if len(shown) > 1 else None)

    return [Route("/inspect", index), Route("/inspect/{name:path}", show)]
