"""The type of a name that a test, a bench or a tool takes out of a list or a table.

The names of protocols in public signatures are Literals, so that a checker shows a user a
misspelled one. A name out of `dialect_names()`, of a folder or of a table of cases is not spelled
where it is used.
"""

from typing import Any, TypeAlias

AnyName: TypeAlias = Any
