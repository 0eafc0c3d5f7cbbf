"""Claims about models, and the rules that settle them.

In: claims of sources, each about one fact of one model, and rules by family.  Out: one value for
each fact, the disagreements with what settled each, and the rules that changed nothing.

Laws: claims that agree need no rule. The first rule whose pattern matches a model and a fact, and
whose preferred source has a claim, settles it. Each rule states its source and its month.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from deltafold.dialects.model_names import canonical_model

Value: TypeAlias = bool | int | str | tuple[str, ...]
Facts: TypeAlias = Mapping[str, Value]

SMALLEST: Final = "smallest"
"""Preference of the smallest number: a request within it is accepted whichever source is right."""


class Name(NamedTuple):
    """A name as a source writes it.

    Attributes:
        written: the name.
        source: the package.
        kind: the kind of the literal that has it, None if the literal mixes kinds.
        host: the vendor in litellm's list, "" for a literal of an SDK.
        is_of_chat: whether the literal is that of OpenAI's Chat Completions.
    """

    written: str
    source: str
    kind: str | None = None
    host: str = ""
    is_of_chat: bool = False

    @property
    def key(self) -> str:
        """The canonical name, with `@` before a snapshot."""
        model, snapshot = canonical_model(self.written)
        return f"{model}@{snapshot}" if snapshot else model


class Claim(NamedTuple):
    """A value that one source gives to one fact of one model."""

    model: str
    fact: str
    source: str
    value: Value


class Rule(NamedTuple):
    """Settlement of a fact for a family of models.

    Attributes:
        models: pattern of the whole canonical name.
        facts: pattern of the whole name of the fact.
        source: page, file of a package or measurement that the rule follows.
        month: month in which the source was read, as "YYYY-MM".
        value: the value; None if a source of the claims is preferred instead.
        prefer: name of the preferred source, or `SMALLEST`.
    """

    models: str
    facts: str
    source: str
    month: str
    value: Value | None = None
    prefer: str = ""

    def settles(self, claims: Mapping[str, Value]) -> Value | None:
        """Return the value by this rule, None if it has none for these claims."""
        if self.value is not None:
            return self.value
        if self.prefer == SMALLEST:
            return min((value for value in claims.values() if isinstance(value, int)), default=None)
        return claims.get(self.prefer)


class Disagreement(NamedTuple):
    """Different values of one fact, and the rule that settles them, if any."""

    model: str
    fact: str
    claims: Mapping[str, Value]
    rule: Rule | None
    value: Value | None

    def __str__(self) -> str:
        """Return one line for the report."""
        said = ", ".join(f"{source} {value!r}" for source, value in sorted(self.claims.items()))
        by = (
            f"{self.value!r} by {self.rule.source} ({self.rule.month})"
            if self.rule
            else "UNSETTLED"
        )
        return f"{self.model}: {self.fact}: {said}: {by}"


@dataclass(frozen=True, slots=True)
class Settled:
    """Settled claims.

    Attributes:
        facts: the facts of each model.
        disagreements: facts about which sources, or a source and a rule, disagree.
        idle: rules that gave no fact another value than the claims alone would have.
    """

    facts: dict[str, dict[str, Value]] = field(default_factory=dict[str, dict[str, Value]])
    disagreements: list[Disagreement] = field(default_factory=list[Disagreement])
    idle: list[Rule] = field(default_factory=list[Rule])

    @property
    def unsettled(self) -> list[Disagreement]:
        """Disagreements that no rule settles."""
        return [found for found in self.disagreements if found.rule is None]


def settle(models: Iterable[str], claims: Iterable[Claim], rules: Sequence[Rule]) -> Settled:
    """Settle all claims about the given models by the rules."""
    grouped: dict[str, dict[str, dict[str, Value]]] = {model: {} for model in models}
    for claim in claims:
        grouped[claim.model].setdefault(claim.fact, {})[claim.source] = claim.value
    names = sorted({fact for facts in grouped.values() for fact in facts} | _named(rules))
    settled, used = Settled(), set[int]()
    for model, facts in sorted(grouped.items()):
        found = settled.facts.setdefault(model, {})
        for fact in names:
            said = facts.get(fact, {})
            values = set(said.values())
            alone = next(iter(values)) if len(values) == 1 else None
            number, by_rule = _first(model, fact, said, rules)
            value = alone if number is None else by_rule
            if number is not None and value != alone:
                used.add(number)
            if len(values) > 1 or (values and value != alone):
                rule = None if number is None else rules[number]
                settled.disagreements.append(Disagreement(model, fact, said, rule, value))
            if value is not None:
                found[fact] = value
    settled.idle.extend(rule for number, rule in enumerate(rules) if number not in used)
    return settled


def _named(rules: Iterable[Rule]) -> set[str]:
    """Return the facts that rules name in full, which may be facts of no source."""
    return {fact for rule in rules if rule.value is not None for fact in expanded(rule.facts)}


@cache
def expanded(pattern: str) -> tuple[str, ...]:
    """Return the names of a pattern of the form `a.(b|c)`."""
    found = re.fullmatch(r"([\w.@-]*)\(([^()]*)\)([\w.@-]*)", pattern)
    if found is None:
        return (pattern,)
    return tuple(f"{found[1]}{word}{found[3]}" for word in found[2].split("|"))


def _first(
    model: str, fact: str, claims: Mapping[str, Value], rules: Sequence[Rule]
) -> tuple[int | None, Value | None]:
    name = model.partition("@")[0]
    for number, rule in enumerate(rules):
        if fact in expanded(rule.facts) and re.fullmatch(rule.models, name):
            value = rule.settles(claims)
            if value is not None:
                return number, value
    return None, None
