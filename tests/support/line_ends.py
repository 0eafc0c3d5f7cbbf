"""Forms of line ends, and what servers send between the events to keep a connection."""


def line_ends(body: bytes) -> dict[str, bytes]:
    return {
        "lf": body,
        "crlf": body.replace(b"\n", b"\r\n"),
        "cr": body.replace(b"\n", b"\r"),
        "bom": b"\xef\xbb\xbf" + body,
        "no space": body.replace(b"data: ", b"data:").replace(b"event: ", b"event:"),
        "bom, crlf, no space": b"\xef\xbb\xbf"
        + body.replace(b"data: ", b"data:").replace(b"\n", b"\r\n"),
    }


KEEP_ALIVES = [
    b": ping\n\n",
    b":\n",
    b"id: 1\n: ping\n\n",
    b"data:\n\n",
    b"data: \n\n",
    b"data:    \n\n",
    b"event: ping\n\n",
    b"event: ping\ndata: {}\n\n",
    b"retry: 100\n\n",
    b"\n\n\n",
]
