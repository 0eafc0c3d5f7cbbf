"""Global telemetry: the observer of every call of every Model, of every run and of every tool.

In: a `Telemetry` and a `StepTelemetry`, set by `deltafold.otel`.  Out: the same, for the code that
begins a call, a run or a tool.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol

from deltafold.models.call_inputs import Telemetry

if TYPE_CHECKING:
    from deltafold.contract.usage import Usage
    from deltafold.message.messages import Message


class Step:
    """A run or a tool under way; this one is observed by nobody. No method raises."""

    def inside(self) -> AbstractContextManager[object]:
        """Return the context in which whatever begins belongs to the step."""
        return nullcontext()

    def ended(
        self,
        error_type: str | None,
        *,
        usage: "Usage | None" = None,
        answer: "Message | None" = None,
        result: str | None = None,
    ) -> None:
        """Learn of the end.

        Args:
            error_type: a short name of the failure, None after success.
            usage: the tokens of a run.
            answer: the last answer of a run.
            result: the text of a tool's result.
        """


NO_STEP: Final = Step()


class StepTelemetry(Protocol):
    """Makes the observers of runs and of tools; it must not raise."""

    def begun_run(
        self, agent_name: str | None, session_id: str | None, said: "Message | None"
    ) -> Step:
        """Return the observer of a run, which begins with the input `said` or goes on."""
        ...

    def begun_tool(self, name: str, call_id: str, description: str, arguments: str) -> Step:
        """Return the observer of one execution of a tool; `arguments` is their JSON text."""
        ...


class _Current:
    """The telemetry of all calls and of all steps, None if it is switched off."""

    telemetry: Telemetry | None = None
    steps: StepTelemetry | None = None


CURRENT: Final = _Current()


def set_telemetry(telemetry: Telemetry | None, steps: StepTelemetry | None = None) -> None:
    """Set the telemetry of all later calls, runs and tools; None switches it off."""
    CURRENT.telemetry = telemetry
    CURRENT.steps = steps
