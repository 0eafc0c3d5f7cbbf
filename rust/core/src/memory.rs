//! Memory that the next feed of a stream reads, for a caller that fetches it earlier.
//!
//! In: the state of a stream.  Out: addresses.
//!
//! Law: the addresses are hints for the caches of the processor.  The caller never reads the memory behind them, which may have
//! been freed.

/// Receives the address of a piece of memory, and its length in bytes.
pub type Report<'a> = dyn FnMut(*const u8, usize) + 'a;

/// Report the memory of a value.  The memory behind its pointers is left out.
pub fn of<T: ?Sized>(value: &T, report: &mut Report<'_>) {
    report(std::ptr::from_ref(value).cast(), size_of_val(value));
}
