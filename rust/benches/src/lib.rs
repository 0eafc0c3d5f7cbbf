//! What is measured: streams made up here, and the work that each stage does on them.
//!
//! Laws: the same call makes the same bytes on every machine; a stage returns a number that its caller can check, so that
//! nobody measures a stage that did nothing.

pub mod hostile;
pub mod stages;
pub mod streams;
