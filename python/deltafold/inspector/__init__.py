"""Inspector: one recorded response as one HTML page, for a person who asks what a stream did.

In: a recording and its dialect.  Out: its events, the deltas of each event with their times, the
errors and warnings at the events that caused them; a page that shows and plays them; the first
event at which two recordings disagree.

Laws: the deltas are those of a stream of the same bytes. A recording is hostile input: the page
shows its content as text, executes only its own scripts, and loads nothing.
"""

from deltafold.inspector.comparison import Difference, first_difference
from deltafold.inspector.inspection import Inspection, inspect_recording
from deltafold.inspector.page import is_page, make_index, make_page, read_page

__all__ = [
    "Difference",
    "Inspection",
    "first_difference",
    "inspect_recording",
    "is_page",
    "make_index",
    "make_page",
    "read_page",
]
