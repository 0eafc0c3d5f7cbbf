//! `FAMILIES`: one row for each family, with the literals of its markup and the grammar that each literal opens.
//!
//! Law: each literal begins with `<` or `[`, because the search stops only at these bytes.
//!
//! Source: docs/protocols/inline-markup.md; each row names its section.

use super::block::{Block, Undecided};
use super::gemma::GemmaBlock;
use super::harmony::{CHANNEL, HarmonyBlock, START};
use super::json_calls::{JsonBlock, JsonGrammar, Tag as JsonTag};
use super::named_calls::{Header, NamedBlock, NamedGrammar, Tag as NamedTag};
use super::pythonic::{PythonicBlock, PythonicGrammar};
use super::xml_calls::{End, XmlBlock, XmlGrammar};

/// Family of models that write the same markup.
#[derive(Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
pub struct Family {
    /// Name of the family in the public API.
    pub name: &'static str,
    /// Literals of the markup.
    pub(super) literals: &'static [(&'static str, Role)],
    /// True if models think again after calls.
    pub(super) interleaved: bool,
    /// True if a call may begin before the thinking is closed.
    pub(super) calls_in_thinking: bool,
    /// True if a turn may consist of calls without any tag.
    pub(super) untagged: bool,
    /// True if thinking is a message of harmony.
    pub(super) harmony: bool,
}

/// Meaning of a literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// Start of thinking, with the number of the pair of tags.
    Think(u8),
    /// End of thinking, with the number of the pair of tags.
    ThinkEnd(u8),
    /// Start of calls.
    Calls(Grammar),
    /// Start of the answer, in families that wrap it.
    Answer,
    /// End of the answer.
    AnswerEnd,
}

/// Grammar of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Grammar {
    Json(&'static JsonGrammar),
    /// Calls that name the tool first.  True if the literal begins a call, false if it begins a section.
    Named(&'static NamedGrammar, bool),
    /// Calls as tags, after an opening tag or inside a tag that begins a call.
    Xml(&'static XmlGrammar, Option<&'static str>),
    Pythonic(&'static PythonicGrammar),
    Gemma,
    Harmony(&'static str),
    Undecided(Undecided),
}

impl Family {
    /// Return the literals that the parser searches for.
    pub fn literals(&self) -> impl Iterator<Item = &'static str> {
        self.literals.iter().map(|(literal, _)| *literal)
    }

    /// Return true if white space around markup inside a text belongs to the markup.
    pub(super) fn strips(&self) -> bool {
        self.untagged || self.literals.iter().any(|(_, role)| matches!(role, Calls(_)))
    }
}

impl Grammar {
    pub(super) fn block(self) -> Block {
        match self {
            Self::Json(grammar) => Block::Json(JsonBlock::new(grammar)),
            Self::Named(grammar, in_call) => Block::Named(NamedBlock::new(grammar, in_call)),
            Self::Xml(grammar, tag) => Block::Xml(XmlBlock::new(grammar, tag)),
            Self::Pythonic(grammar) => Block::Pythonic(PythonicBlock::new(grammar)),
            Self::Gemma => Block::Gemma(GemmaBlock::new()),
            Self::Harmony(mark) => Block::Harmony(HarmonyBlock::new(mark)),
            Self::Undecided(which) => Block::Undecided(which),
        }
    }
}

use Role::{Answer, AnswerEnd, Calls, Think, ThinkEnd};

/// Defaults of a row.
const ROW: Family = Family {
    name: "",
    literals: &[],
    interleaved: false,
    calls_in_thinking: false,
    untagged: false,
    harmony: false,
};

/// All families.
pub const FAMILIES: &[Family] = &[
    // docs/protocols/inline-markup.md#reasoning
    Family {
        name: "think",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<thinking>", Think(1)),
            ("</thinking>", ThinkEnd(1)),
            ("[THINK]", Think(2)),
            ("[/THINK]", ThinkEnd(2)),
            ("<seed:think>", Think(3)),
            ("</seed:think>", ThinkEnd(3)),
            ("<reasoning>", Think(4)),
            ("</reasoning>", ThinkEnd(4)),
            ("<thought>", Think(5)),
            ("</thought>", ThinkEnd(5)),
        ],
        ..ROW
    },
    // docs/protocols/inline-markup.md#json
    Family { name: "qwen-json", literals: QWEN_JSON, ..ROW },
    Family {
        name: "hermes",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<tool_call>", Calls(Grammar::Json(HERMES))),
            ("<function_call>", Calls(Grammar::Json(HERMES))),
            ("<tools>", Calls(Grammar::Json(HERMES))),
            ("<tool>", Calls(Grammar::Json(HERMES))),
        ],
        ..ROW
    },
    // docs/protocols/inline-markup.md#xml
    Family {
        name: "qwen-xml",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<tool_call>", Calls(Grammar::Xml(QWEN_XML, None))),
            ("<function=", Calls(Grammar::Xml(QWEN_XML, Some("function=")))),
        ],
        ..ROW
    },
    // docs/protocols/inline-markup.md#python
    Family {
        name: "llama",
        literals: &[
            ("<|python_tag|>", Calls(Grammar::Undecided(Undecided::PythonTag))),
            ("<function=", Calls(Grammar::Named(LLAMA_FUNCTION, true))),
        ],
        untagged: true,
        ..ROW
    },
    Family {
        name: "lfm2",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<|tool_call_start|>", Calls(Grammar::Pythonic(LFM2))),
        ],
        ..ROW
    },
    Family {
        name: "olmo",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<function_calls>", Calls(Grammar::Pythonic(OLMO))),
        ],
        ..ROW
    },
    // docs/protocols/inline-markup.md#named, docs/protocols/inline-markup.md#gemma and
    // docs/protocols/inline-markup.md#mistral-cohere
    Family {
        name: "mistral",
        literals: &[
            ("[THINK]", Think(0)),
            ("[/THINK]", ThinkEnd(0)),
            ("<think>", Think(1)),
            ("</think>", ThinkEnd(1)),
            ("[TOOL_CALLS]", Calls(Grammar::Undecided(Undecided::Mistral))),
        ],
        ..ROW
    },
    Family {
        name: "kimi",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<|tool_calls_section_begin|>", Calls(Grammar::Named(KIMI, false))),
            ("<|tool_call_section_begin|>", Calls(Grammar::Named(KIMI, false))),
            ("<|tool_call_begin|>", Calls(Grammar::Named(KIMI, true))),
        ],
        interleaved: true,
        calls_in_thinking: true,
        ..ROW
    },
    Family {
        name: "gemma",
        literals: &[
            ("<|channel>thought", Think(0)),
            ("<channel|>", ThinkEnd(0)),
            ("<|tool_call>", Calls(Grammar::Gemma)),
            ("<start_function_call>", Calls(Grammar::Gemma)),
        ],
        interleaved: true,
        ..ROW
    },
    Family {
        name: "cohere",
        literals: &[
            ("<|START_THINKING|>", Think(0)),
            ("<|END_THINKING|>", ThinkEnd(0)),
            ("<|START_ACTION|>", Calls(Grammar::Json(COHERE))),
            ("<|START_RESPONSE|>", Answer),
            ("<|END_RESPONSE|>", AnswerEnd),
            ("<|START_TEXT|>", Answer),
            ("<|END_TEXT|>", AnswerEnd),
        ],
        ..ROW
    },
    // docs/protocols/inline-markup.md#xml
    Family {
        name: "glm",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<tool_call>", Calls(Grammar::Xml(GLM, None))),
        ],
        interleaved: true,
        ..ROW
    },
    Family {
        name: "minimax",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<minimax:tool_call>", Calls(Grammar::Xml(INVOKE, None))),
            ("<invoke name=", Calls(Grammar::Xml(INVOKE, Some("invoke name=")))),
        ],
        interleaved: true,
        ..ROW
    },
    Family {
        name: "claude",
        literals: &[
            ("<thinking>", Think(0)),
            ("</thinking>", ThinkEnd(0)),
            ("<function_calls>", Calls(Grammar::Xml(INVOKE, None))),
            ("<invoke name=", Calls(Grammar::Xml(INVOKE, Some("invoke name=")))),
        ],
        ..ROW
    },
    // docs/protocols/inline-markup.md#named and docs/protocols/inline-markup.md#xml
    Family {
        name: "deepseek",
        literals: &[
            ("<think>", Think(0)),
            ("</think>", ThinkEnd(0)),
            ("<｜tool▁calls▁begin｜>", Calls(Grammar::Named(DEEPSEEK, false))),
            ("<｜tool_calls_begin｜>", Calls(Grammar::Named(DEEPSEEK, false))),
            ("<｜tool calls begin｜>", Calls(Grammar::Named(DEEPSEEK, false))),
            ("<｜tool▁calls｜>", Calls(Grammar::Named(DEEPSEEK, false))),
            ("<|tool▁calls▁begin|>", Calls(Grammar::Named(DEEPSEEK, false))),
            ("<|tool_calls_begin|>", Calls(Grammar::Named(DEEPSEEK, false))),
            ("<｜tool▁call▁begin｜>", Calls(Grammar::Named(DEEPSEEK, true))),
            ("<｜tool_call_begin｜>", Calls(Grammar::Named(DEEPSEEK, true))),
            ("<｜tool call begin｜>", Calls(Grammar::Named(DEEPSEEK, true))),
            ("<|tool▁call▁begin|>", Calls(Grammar::Named(DEEPSEEK, true))),
            ("<|tool_call_begin|>", Calls(Grammar::Named(DEEPSEEK, true))),
            ("<｜DSML｜function_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<｜DSML｜tool_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<｜DSML｜ function_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<｜DSML｜ tool_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<|DSML|function_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<|DSML|tool_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<|DSML| function_calls>", Calls(Grammar::Xml(DSML, None))),
            ("<|DSML| tool_calls>", Calls(Grammar::Xml(DSML, None))),
        ],
        interleaved: true,
        calls_in_thinking: true,
        ..ROW
    },
    // docs/protocols/inline-markup.md#harmony
    Family {
        name: "harmony",
        literals: &[
            (START, Calls(Grammar::Harmony(START))),
            (CHANNEL, Calls(Grammar::Harmony(CHANNEL))),
        ],
        harmony: true,
        ..ROW
    },
];

/// Return the family with this name.
pub fn find(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

const QWEN_JSON: &[(&str, Role)] = &[
    ("<think>", Think(0)),
    ("</think>", ThinkEnd(0)),
    ("<tool_call>", Calls(Grammar::Json(HERMES))),
];

const HERMES: &JsonGrammar = &JsonGrammar {
    tags: &[
        ("<tool_call>", JsonTag::Open),
        ("<function_call>", JsonTag::Open),
        ("</tool_call>", JsonTag::Close),
        ("</function_call>", JsonTag::Close),
        ("</tools>", JsonTag::Close),
        ("</tool>", JsonTag::Close),
        ("```json", JsonTag::Fence),
        ("```\n", JsonTag::Fence),
    ],
    id: None,
    held: false,
};

const COHERE: &JsonGrammar = &JsonGrammar {
    tags: &[("<|START_ACTION|>", JsonTag::Open), ("<|END_ACTION|>", JsonTag::Close)],
    id: Some("tool_call_id"),
    held: false,
};

const MISTRAL_ARRAY: &JsonGrammar = &JsonGrammar {
    tags: &[("[TOOL_CALLS]", JsonTag::Open), ("</s>", JsonTag::Close)],
    id: Some("id"),
    held: false,
};

const LLAMA_OBJECT: &JsonGrammar = &JsonGrammar {
    tags: &[
        ("<|python_tag|>", JsonTag::Open),
        ("<|eom_id|>", JsonTag::Close),
        ("<|eot_id|>", JsonTag::Close),
    ],
    id: None,
    held: true,
};

const MISTRAL: &NamedGrammar = &NamedGrammar {
    tags: &[
        ("[TOOL_CALLS]", NamedTag::Begin),
        ("[CALL_ID]", NamedTag::Id),
        ("[ARGS]", NamedTag::Arguments),
        ("</s>", NamedTag::Close),
    ],
    header: Header::Bare,
};

const KIMI: &NamedGrammar = &NamedGrammar {
    tags: &[
        ("<|tool_call_begin|>", NamedTag::Begin),
        ("<|tool_call_argument_begin|>", NamedTag::Arguments),
        ("<|tool_call_end|>", NamedTag::End),
        ("<|tool_calls_section_end|>", NamedTag::Close),
        ("<|tool_call_section_end|>", NamedTag::Close),
    ],
    header: Header::Kimi,
};

const DEEPSEEK: &NamedGrammar = &NamedGrammar {
    tags: &[
        ("<｜tool▁call▁begin｜>", NamedTag::Begin),
        ("<｜tool_call_begin｜>", NamedTag::Begin),
        ("<｜tool call begin｜>", NamedTag::Begin),
        ("<|tool▁call▁begin|>", NamedTag::Begin),
        ("<|tool_call_begin|>", NamedTag::Begin),
        ("<｜tool▁sep｜>", NamedTag::Arguments),
        ("<｜tool_sep｜>", NamedTag::Arguments),
        ("<｜tool sep｜>", NamedTag::Arguments),
        ("<|tool▁sep|>", NamedTag::Arguments),
        ("<|tool_sep|>", NamedTag::Arguments),
        ("<｜tool▁call▁end｜>", NamedTag::End),
        ("<｜tool_call_end｜>", NamedTag::End),
        ("<｜tool call end｜>", NamedTag::End),
        ("<|tool▁call▁end|>", NamedTag::End),
        ("<|tool_call_end|>", NamedTag::End),
        ("<｜tool▁calls▁end｜>", NamedTag::Close),
        ("<｜tool_calls_end｜>", NamedTag::Close),
        ("<｜tool calls end｜>", NamedTag::Close),
        ("<|tool▁calls▁end|>", NamedTag::Close),
        ("<|tool_calls_end|>", NamedTag::Close),
        ("```json", NamedTag::Fence),
        ("```", NamedTag::Fence),
    ],
    header: Header::DeepSeek,
};

const LLAMA_FUNCTION: &NamedGrammar = &NamedGrammar {
    tags: &[
        (">", NamedTag::Arguments),
        ("</function>", NamedTag::End),
        ("<function=", NamedTag::Begin),
        ("<|eom_id|>", NamedTag::Close),
        ("<|eot_id|>", NamedTag::Close),
    ],
    header: Header::Name,
};

const QWEN_XML: &XmlGrammar = &XmlGrammar {
    ends: &[("</parameter>", End::Own), ("<parameter=", End::Next), ("</function>", End::Next)],
    framed_by_newlines: true,
    bare_names: false,
};

const INVOKE: &XmlGrammar = &XmlGrammar {
    ends: &[("</parameter>", End::Own)],
    framed_by_newlines: true,
    bare_names: false,
};

const DSML: &XmlGrammar = &XmlGrammar {
    ends: &[
        ("</｜DSML｜parameter>", End::Own),
        ("</｜DSML｜ parameter>", End::Own),
        ("</|DSML|parameter>", End::Own),
        ("</|DSML| parameter>", End::Own),
    ],
    framed_by_newlines: false,
    bare_names: false,
};

const GLM: &XmlGrammar = &XmlGrammar {
    ends: &[("</arg_value>", End::Own)],
    framed_by_newlines: false,
    bare_names: true,
};

/// Llama's calls without a tag.
const LLAMA_LIST: &PythonicGrammar = &PythonicGrammar {
    ends: &[("<|eom_id|>", ()), ("<|eot_id|>", ())],
    offered: true,
    lines: false,
    method: ".call",
};

const LFM2: &PythonicGrammar = &PythonicGrammar {
    ends: &[("<|tool_call_end|>", ())],
    offered: false,
    lines: false,
    method: "",
};

const OLMO: &PythonicGrammar = &PythonicGrammar {
    ends: &[("</function_calls>", ())],
    offered: false,
    lines: true,
    method: "",
};

impl Undecided {
    /// Return the block whose grammar begins with `byte`.
    pub(super) fn decide(self, byte: u8) -> Block {
        let grammar = match (self, byte) {
            (Self::Mistral, b'[' | b'{') => Grammar::Json(MISTRAL_ARRAY),
            (Self::Mistral, _) => Grammar::Named(MISTRAL, true),
            (Self::PythonTag, b'{') => Grammar::Json(LLAMA_OBJECT),
            (Self::PythonTag, _) => Grammar::Pythonic(LLAMA_LIST),
        };
        grammar.block()
    }
}
