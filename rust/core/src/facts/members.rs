//! Counts of a usage record, and the paths at which a protocol writes them.

/// A count of a usage record, as the provider counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageMember {
    /// Tokens of the prompt.
    Input,
    /// Tokens that tools added to the prompt, if they are not part of `Input`.
    ToolInput,
    /// Tokens generated.
    Output,
    /// Sum of prompt and generated tokens.
    Total,
    /// Prompt tokens read from a cache.
    CacheRead,
    /// Prompt tokens written to a cache.
    CacheWrite,
    /// Tokens spent on reasoning.
    Reasoning,
    /// Audio tokens of the prompt.
    AudioInput,
    /// Audio tokens generated.
    AudioOutput,
    /// US dollars.
    Cost,
    /// Ten billionths of a US dollar (xAI).
    CostTicks,
}

impl UsageMember {
    /// All members.
    pub const ALL: [Self; 11] = [
        Self::Input,
        Self::ToolInput,
        Self::Output,
        Self::Total,
        Self::CacheRead,
        Self::CacheWrite,
        Self::Reasoning,
        Self::AudioInput,
        Self::AudioOutput,
        Self::Cost,
        Self::CostTicks,
    ];
}

/// A count and its paths.  The first path is written.  The list is empty if the protocol has no such count.
#[derive(Clone, Copy, Debug)]
pub struct UsageRow {
    /// The count.
    pub member: UsageMember,
    /// The paths of the count in a record.
    pub paths: &'static [&'static str],
}
