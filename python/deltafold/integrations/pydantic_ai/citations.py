"""Annotations of a text as citations of pydantic-ai.

In: annotations in the form of their provider.  Out: the framework's `Citation`s.

Law: an annotation without a source that a reader can find gives no citation. The annotations
themselves are kept beside the citations.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from pydantic_ai.messages import (
    Citation,
    CitationSource,
    DocumentCitationSource,
    MarkerCitationAnchor,
    WebCitationSource,
)


def citations_of(annotations: Iterable[object]) -> list[Citation] | None:
    """Return the citations of a text, None without any."""
    found = [
        citation
        for annotation in annotations
        if isinstance(annotation, Mapping)
        for citation in _citation(cast("Mapping[str, object]", annotation))
    ]
    return found or None


def _citation(annotation: Mapping[str, object]) -> list[Citation]:
    nested = annotation.get("url_citation")
    members = cast("Mapping[str, object]", nested) if isinstance(nested, Mapping) else annotation
    source = _source(members)
    if source is None:
        return []
    start, end = members.get("start_index"), members.get("end_index")
    anchor = None
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
        anchor = MarkerCitationAnchor(start=start, end=end)
    return [Citation(sources=[source], anchor=anchor)]


def _source(members: Mapping[str, object]) -> CitationSource | None:
    url = _text(members, "url")
    title = _text(members, "title") or _text(members, "document_title")
    excerpt = _text(members, "cited_text") or _text(members, "content")
    excerpts = [] if excerpt is None else [excerpt]
    if url is not None:
        return WebCitationSource(url=url, title=title, excerpts=excerpts)
    document = _text(members, "file_id")
    title = title or _text(members, "filename")
    if document is None and title is None and not excerpts:
        return None
    return DocumentCitationSource(document_id=document, title=title, excerpts=excerpts)


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) and value else None
