#!/bin/sh
# Rewrites the hash-pinned requirement files from the *.in files; needs pip-tools on PATH.
# The files name no index: whoever installs uses the index that their pip is set to.
set -eu
cd "$(dirname "$0")"
for name in build test lint demo bench sdks judges loops frameworks strands local wheels docs extras release gateway aider peers browser engines takeover llm gptme modeltable drift tracing requests; do
    CUSTOM_COMPILE_COMMAND="requirements/lock.sh" pip-compile --quiet --upgrade --strip-extras \
        --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
        --output-file "$name.txt" "$name.in"
done
