"""A store of one's own: a folder for each session, and in it a file for each entry.

`check_store` checks it.

    python examples/folder_store.py
"""

import tempfile
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from uuid import uuid4

from deltafold import Message
from deltafold.conversation import ConversationLog, StoreConflictError
from deltafold.testing import check_store


class FolderStore:
    """Sessions in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def folder(self, session_id: str) -> Path:
        """Return the folder of a session, whose id may have any characters."""
        return self.path / sha256(session_id.encode()).hexdigest()

    def read(self, session_id: str) -> Iterator[str]:
        """Yield the texts up to the first position that has none."""
        for position in count():
            try:
                data = (self.folder(session_id) / str(position)).read_bytes()
            except FileNotFoundError:
                return
            yield data.decode()

    def append(self, session_id: str, position: int, data: str) -> None:
        """Write a file under the name of its position, which no other file may have."""
        folder = self.folder(session_id)
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f"new-{uuid4()}"
        written.write_bytes(data.encode())
        try:
            (folder / str(position)).hardlink_to(written)
        except FileExistsError as error:
            raise StoreConflictError(session_id, position) from error
        finally:
            written.unlink()


def main() -> None:
    """Check the store, and keep a conversation in it."""
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder))
        check_store(lambda: store)
        ConversationLog("trip", store=store).append_message(Message.user("When is high tide?"))
        print(len(ConversationLog("trip", store=store).entries))


if __name__ == "__main__":
    main()
