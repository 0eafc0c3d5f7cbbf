//! Workloads of the benchmarks: generated streams, and the work of each stage on them.
//!
//! Laws: the same call generates the same bytes on every machine.  A stage returns a number that its caller can check, so
//! that a stage without any effect is noticed.

pub mod hostile;
pub mod stages;
pub mod streams;
