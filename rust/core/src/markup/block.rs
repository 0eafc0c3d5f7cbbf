//! `Block`: the block of markup that is being parsed, with one variant for each grammar.

use super::gemma::GemmaBlock;
use super::harmony::HarmonyBlock;
use super::json_calls::JsonBlock;
use super::named_calls::NamedBlock;
use super::pythonic::PythonicBlock;
use super::xml_calls::XmlBlock;

/// State of the grammar of a block.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Block {
    Nothing,
    Undecided(Undecided),
    Json(JsonBlock),
    Named(NamedBlock),
    Xml(XmlBlock),
    Pythonic(PythonicBlock),
    Gemma(GemmaBlock),
    Harmony(HarmonyBlock),
}

/// Family whose grammar follows from the first byte after the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecided {
    Mistral,
    PythonTag,
}
