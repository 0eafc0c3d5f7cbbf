"""The generator of the table of models, on small given sources.

In: claims, rules and rows of sources, without the packages that they come from.  Out: the table,
and what makes the command fail.
"""

import random
from typing import Any, Final

import pytest

from model_claims import SMALLEST, Claim, Name, Rule, settle
from model_litellm import litellm_claims
from model_profiles import profile_facts
from model_rows import Overlay, Table, build, differences, text_of
from model_sources import shutdowns

RULES: Final = (
    Rule(r"model-.*", "endpoints", "a page", "2026-11", value=("openai-chat", "openai-responses")),
    Rule(r"model-2", "thinking", "a measurement", "2026-11", prefer="profiles"),
    Rule(r"model-.*", "context_window", "hosts differ", "2026-11", prefer=SMALLEST),
    Rule(r"model-2", "effort.(low|high)", "a page", "2026-11", value=True),
    Rule(r"model-2", "effort.(none|minimal|medium|xhigh)", "a page", "2026-11", value=False),
    Rule(r"model-2", "effort.max", "a page", "2026-11", value=True),
    Rule(r"model-2", "effort.max@openai-chat", "a page", "2026-11", value=False),
)

CLAIMS: Final = (
    Claim("model-1", "kind", "sdk", "chat"),
    Claim("model-1", "thinking", "list", "never"),
    Claim("model-2", "kind", "sdk", "chat"),
    Claim("model-2", "thinking", "list", "always"),
    Claim("model-2", "thinking", "profiles", "default"),
    Claim("model-2", "context_window", "list", 1_000),
    Claim("model-2", "context_window", "prices", 2_000),
    Claim("model-2", "retired", "list", "2027-01-01"),
    Claim("model-2@0101", "kind", "list", "chat"),
    Claim("model-2@0101", "thinking", "profiles", "default"),
    Claim("model-2@0202", "kind", "list", "chat"),
    Claim("model-2@0202", "thinking", "profiles", "never"),
    Claim("model-3", "kind", "sdk", "chat"),
    Claim("model-4", "kind", "sdk", "image"),
    Claim("model-4", "thinking", "profiles", "always"),
)

REQUIRED: Final = {"maker": ("thinking", "endpoints", "efforts")}


def table(
    rules: tuple[Rule, ...] = RULES,
    claims: tuple[Claim, ...] = CLAIMS,
    family: str = r"model-.*",
    special: str = "",
) -> Table:
    """Return the table of the small sources."""
    overlay = Overlay([("maker", family)], rules, REQUIRED, special, "2026-11")
    return build({claim.model for claim in claims}, claims, overlay, ["sdk"], {"list": "1.0"})


def facts_in(built: Table, name: str) -> dict[str, Any]:
    """Return the row of a name, without its limits and dates."""
    row: dict[str, Any] = built.data["rows"][built.data["models"][name][0]]
    return row


def test_small_sources_make_a_table_without_problems() -> None:
    built = table()
    assert built.problems == []
    assert built.data["sources"] == {"month": "2026-11", "list": "1.0"}
    assert built.data["models"]["model-2"][1:] == [1_000, None, "2027-01-01"]
    assert facts_in(built, "model-2")["thinking"] == "default"


@pytest.mark.parametrize("number", range(len(RULES) - 1), ids=[rule.facts for rule in RULES[:-1]])
def test_a_removed_rule_makes_the_command_fail(number: int) -> None:
    assert table(RULES[:number] + RULES[number + 1 :]).problems


def test_a_removed_rule_that_leaves_the_table_whole_makes_the_comparison_fail() -> None:
    without = table(RULES[:-1])
    assert without.problems == []
    (line,) = differences(table().data, without.data)
    before, _, after = line.partition(" becomes ")
    assert before.startswith("model-2: efforts: {'openai-chat': ['low', 'high'],")
    assert after.startswith("{'openai-chat': ['low', 'high', 'max'],")


def test_a_disagreement_is_listed_with_what_settles_it() -> None:
    found = {str(found) for found in table().settled.disagreements}
    assert (
        "model-2: thinking: list 'always', profiles 'default': 'default' by a measurement (2026-11)"
    ) in found
    unsettled = table(RULES[:1] + RULES[2:]).settled.unsettled
    assert [str(one) for one in unsettled] == [
        "model-2: thinking: list 'always', profiles 'default': UNSETTLED"
    ]


def test_a_rule_against_all_sources_is_a_disagreement_too() -> None:
    rule = Rule(r"model-1", "thinking", "measured", "2026-11", value="optional")
    settled = settle(["model-1"], [Claim("model-1", "thinking", "list", "never")], [rule])
    assert settled.facts["model-1"] == {"thinking": "optional"}
    assert settled.disagreements[0].rule is rule


def test_a_rule_without_effect_is_reported() -> None:
    idle = Rule(r"model-1", "thinking", "a page", "2026-11", value="never")
    built = table((*RULES, idle))
    assert built.problems == ["rule without effect: model-1 thinking"]


def test_a_preferred_source_without_a_claim_leaves_the_fact_to_the_next_rule() -> None:
    rules = (
        Rule(r".*", "tools", "one", "2026-11", prefer="absent"),
        Rule(r".*", "tools", "two", "2026-11", prefer="list"),
    )
    claims = [Claim("m", "tools", "list", value=True), Claim("m", "tools", "other", value=False)]
    assert settle(["m"], claims, rules).facts == {"m": {"tools": True}}


def test_a_name_of_no_family_and_a_name_of_no_kind_are_unknown() -> None:
    assert table(family=r"model-[124]").unknown == ["model-3"]
    claims = (*CLAIMS, Claim("model-5", "tools", "list", value=True))
    assert table(claims=claims).unknown == ["model-5"]
    assert "unknown: model-5" in table(claims=claims).problems


def test_a_model_that_only_a_literal_has_gets_no_fact_by_a_rule() -> None:
    rule = Rule(r"model-.*", "thinking_off", "a page", "2026-11", value="disabled")
    built = table((*RULES, rule))
    assert built.bare == ["model-3"]
    assert facts_in(built, "model-3") == {
        "kind": "chat",
        "vendor": "maker",
        "endpoints": ["openai-chat", "openai-responses"],
    }


def test_a_model_of_another_kind_has_no_facts_of_a_chat() -> None:
    assert facts_in(table(), "model-4") == {"kind": "image", "vendor": "maker"}


def test_a_required_fact_is_missed_unless_the_model_is_special() -> None:
    claims = tuple(claim for claim in CLAIMS if claim.model != "model-1" or claim.fact == "kind")
    claims += (Claim("model-1", "tools", "list", value=True),)
    assert table(claims=claims).missing == ["model-1: thinking", "model-1: efforts"]
    assert table(claims=claims, special="model-1").missing == []


def test_efforts_belong_to_an_api_and_need_every_level() -> None:
    built = table()
    efforts = built.data["efforts"][facts_in(built, "model-2")["efforts"]]
    assert efforts == {"openai-chat": ["low", "high"], "openai-responses": ["low", "high", "max"]}
    never = built.data["efforts"][facts_in(built, "model-1")["efforts"]]
    assert never == {"openai-chat": [], "openai-responses": []}
    without = table(RULES[:4] + RULES[5:])
    assert "efforts" not in facts_in(without, "model-2")


def test_a_snapshot_is_left_out_unless_it_differs() -> None:
    names = table().data["models"]
    assert "model-2@0101" not in names
    assert "model-2@0202" in names


def test_a_model_of_snapshots_alone_has_the_newest_one_as_its_alias() -> None:
    claims = (
        Claim("model-6@0101", "kind", "list", "chat"),
        Claim("model-6@0101", "thinking", "list", "never"),
        Claim("model-6@0202", "kind", "list", "chat"),
        Claim("model-6@0202", "thinking", "list", "always"),
    )
    built = table(claims=claims, special=".*")
    assert facts_in(built, "model-6")["thinking"] == "always"
    assert facts_in(built, "model-6@0101")["thinking"] == "never"


def test_the_same_claims_in_any_order_make_the_same_bytes() -> None:
    text = text_of(table().data)
    for seed in range(5):
        claims = list(CLAIMS)
        random.Random(seed).shuffle(claims)  # noqa: S311 - an order, not a secret
        assert text_of(table(claims=tuple(claims)).data) == text


def test_models_with_the_same_facts_share_a_row() -> None:
    more = tuple(
        Claim("model-7", fact, source, value)
        for name, fact, source, value in CLAIMS
        if name == "model-1"
    )
    built = table(claims=(*CLAIMS, *more))
    assert built.data["models"]["model-7"] == built.data["models"]["model-1"]


def test_differences_name_each_fact() -> None:
    old = table().data
    assert differences(old, old) == []
    claims = tuple(
        claim._replace(value="never") if claim.source == "profiles" else claim
        for claim in CLAIMS
        if claim.model != "model-4"
    )
    new = table(claims=(*claims, Claim("model-8", "kind", "sdk", "chat"))).data
    lines = differences(old, new)
    assert "model-2: thinking: 'default' becomes 'never'" in lines
    assert "model-4: no longer listed" in lines
    assert "model-8: new" in lines


def test_the_section_of_deprecated_values_has_names_and_dates() -> None:
    text = '''
    """Deprecated values:

    - "gpt-a", "gpt-b":
      Announced shutdown date: 2027-04-01. See a page.
    - "gpt-c": Not a supported model ID.
    - "gpt-d":
      Announced shutdown
      date: 2025-01-02. See a page.
    """
    '''
    assert list(shutdowns(text)) == [
        ("gpt-a", "2027-04-01"),
        ("gpt-b", "2027-04-01"),
        ("gpt-d", "2025-01-02"),
    ]


def test_a_row_of_the_list_claims_what_it_states() -> None:
    row = {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 272_000,
        "max_output_tokens": 128_000,
        "supported_endpoints": ["/v1/responses", "/v1/batch"],
        "supported_modalities": ["text", "image"],
        "supports_vision": True,
        "supports_none_reasoning_effort": True,
        "supports_minimal_reasoning_effort": False,
        "default_reasoning_effort": "none",
        "successor_model": "openai/gpt-z",
    }
    facts = dict(litellm_claims(Name("gpt-y", "litellm", "chat", "openai"), row))
    assert facts == {
        "kind": "chat",
        "images": True,
        "audio": False,
        "context_window": 400_000,
        "max_output_tokens": 128_000,
        "effort.none": True,
        "effort.minimal": False,
        "default_effort": "none",
        "thinking": "optional",
        "endpoints": ("openai-responses",),
        "successor": "gpt-z",
    }


def test_a_host_claims_nothing_about_the_efforts_of_the_vendor() -> None:
    row = {"supports_max_reasoning_effort": True, "deprecation_date": "2027-01-01"}
    name = Name("us.anthropic.claude-x-1", "litellm", "chat", "bedrock")
    assert dict(litellm_claims(name, row)) == {"kind": "chat"}


def test_the_profile_of_an_unknown_name_claims_nothing_of_its_thinking() -> None:
    profile = {"supports_thinking": False, "supports_audio_file_input": False}
    assert dict(profile_facts("openai", "gpt-9-sol", profile)) == {}
    plain = profile | {"supports_inline_system_prompts": True}
    facts = dict(profile_facts("openai", "gpt-4.1", plain))
    assert (facts["thinking"], facts["sampling.temperature"]) == ("never", "always")
    assert dict(profile_facts("qwen", "qwen3-max", {"supports_thinking": True})) == {}
