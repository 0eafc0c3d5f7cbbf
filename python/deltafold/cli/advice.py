"""Advice of the library, as a shell takes it.

In: the text of an error, whose advice is for a program in Python.  Out: the same text with the
options and the words of a shell.

Law: a text without such advice is returned as it is.
"""

import re
from typing import Final

_NO_SETTING_OF: Final = r"\1there is no setting '\2'"
_NO_SETTING: Final = r"--set \1: there is no such setting"

_IN_A_SHELL: Final = tuple(
    (re.compile(python), shell)
    for python, shell in (
        (r"^models: '([^']*)': ", r"model \1: "),
        (r"(^|: )name: ", r"\1"),
        (r"^specification: ", "--set specification: "),
        (
            r"Request URL is missing an 'http://'.*",
            "no http:// or https:// before the host: --set base_url=http://HOST:PORT/v1",
        ),
        (r"^(model [^:]*: )(?:Value error, )?\w+Config has no field '([^']*)'", _NO_SETTING_OF),
        (r"^(?:Value error, )?\w+Config has no field '([^']*)'", _NO_SETTING),
        (r"^(?!--)([\w.]+): (?=Input should|Value error, )", r"--set \1: "),
        ("Value error, ", ""),
        ("Input should be", "it must be"),
        (
            r"set (\w+), pass api_key, or pass a client",
            r"export \1=..., or --set api_key=...",
        ),
        ("pass base_url, or a client", "--set base_url=URL"),
        ("through a client of its SDK: pass one, or a base_url", "by its SDK: --set base_url=URL"),
        (r"pass (base_url|api_key)=", r"--set \1=..."),
        (r"pass (extra_headers|extra_query)=", r"""--set \1='{"NAME": "VALUE"}'"""),
        (r"pass tool_specs to .*", "the command sends no tools"),
        (r"pass system_prompt to .*", "--system TEXT"),
        (r"pass timeouts=.*", "the command waits until Ctrl-C"),
        (r"pass client=.*", "the variables HTTPS_PROXY and SSL_CERT_FILE are read"),
        (r"pass hooks=.*", "the command has no hooks"),
        (r"a Model sends nothing twice: .*", "the command sends nothing twice; run it again"),
        (r"several answers are those of .*", "the command asks for one answer"),
        (r"stream\(\) streams, and .*", "the command always streams"),
        (r"pass output= to .*", "--set output_schema='{...}' has the JSON Schema"),
        (r"load '([^']*)', or pass specification='[^']*'", r"name the model \1"),
        (r"known_as='…' names", "--set known_as=... names"),
        ("strict_settings=True sends", "--set strict_settings=true sends"),
        (r"raise max_bytes \(--max-bytes\)", "raise --max-bytes"),
        ("what arrived is in partial_message", "what arrived is on standard output"),
        ("check the dialect and", "check the protocol (--dialect) and"),
        ("without its reasoning, as repair='auto' does", "without its reasoning: begin anew"),
    )
)
"""Advice of errors that reach a command, and what it is in a shell."""


def for_shell(text: str) -> str:
    """Return the text of an error with advice for a shell.

    >>> for_shell("openai needs a key: set OPENAI_API_KEY, pass api_key, or pass a client")
    'openai needs a key: export OPENAI_API_KEY=..., or --set api_key=...'
    """
    for python, shell in _IN_A_SHELL:
        text = python.sub(shell, text)
    return text
