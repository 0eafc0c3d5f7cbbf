//! Memory that the next feed of a stream reads, for a caller that fetches it before.
//!
//! In: a stream's state.  Out: addresses.  The caller must not read what is there: it may ask the processor for it.

/// Receives the address and the bytes of a piece of memory.
pub type Tell<'a> = dyn FnMut(*const u8, usize) + 'a;

/// Tell the memory of a value, without what it points to.
pub fn of<T: ?Sized>(value: &T, tell: &mut Tell<'_>) {
    tell(std::ptr::from_ref(value).cast(), size_of_val(value));
}
