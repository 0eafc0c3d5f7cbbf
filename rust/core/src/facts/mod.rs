//! Facts about protocols as two-way tables: finish reasons, members of usage records, error codes.
//!
//! In: a word of a provider, or a member of a closed list of the contract.  Out: its counterpart.  Decoders and the
//! classifier of refusals map words to the contract, encoders map the contract to words.  The tables of a protocol are in
//! `dialect/<name>/facts.rs`; this module defines their types.
//!
//! Laws, checked by a test for each dialect:
//! - Each table has exactly one row for each member of its closed list.
//! - A row without a word is explicit, and may name the word that an encoder writes instead.
//! - A word occurs in one row only.
//!
//! Sources: mapping of finish reasons, usage and error codes (docs/protocols/decoding.md#facts), words to write
//! (docs/protocols/encoding.md#finish-reasons, docs/protocols/encoding.md#errors).

mod members;
mod paths;
mod table;
mod usage;

pub use members::{UsageMember, UsageRow};
pub use table::{Ending, ErrorCodes, Facts, FinishReasons, Row};
pub(crate) use usage::usage_rows;
pub use usage::{UsageNumbers, UsageRows, UsageTable};
