//! `TryLock`: a lock that is taken without waiting.
//!
//! In: a value of one Python object.  Out: exclusive access, or the reason why there is none.
//!
//! Laws: a thread never waits for the lock.  After a panic of the core under the lock, the value is never accessed again.
//!
//! The standard library's mutex needs an atomic exchange to unlock, because a thread may wait for it.  This lock needs a store.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use spin::mutex::{SpinMutex, SpinMutexGuard};

/// A lock without a queue.
#[derive(Debug, Default)]
pub(crate) struct TryLock<T> {
    value: SpinMutex<T>,
    poisoned: AtomicBool,
}

/// Reason for which a lock was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another call has the lock.
    Busy,
    /// A call panicked under the lock.
    Poisoned,
}

/// Exclusive access to the value.
pub(crate) struct Guard<'a, T> {
    value: SpinMutexGuard<'a, T>,
    poisoned: &'a AtomicBool,
}

impl<T> TryLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value: SpinMutex::new(value), poisoned: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn try_lock(&self) -> Result<Guard<'_, T>, Refused> {
        let value = self.value.try_lock().ok_or(Refused::Busy)?;
        if self.poisoned.load(Ordering::Relaxed) {
            return Err(Refused::Poisoned);
        }
        Ok(Guard { value, poisoned: &self.poisoned })
    }
}

impl<T> Guard<'_, T> {
    /// Run code on the value.  A panic poisons the lock; then the result is `None`.
    pub(crate) fn run<R>(mut self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let outcome = catch_unwind(AssertUnwindSafe(|| f(&mut self.value)));
        if outcome.is_err() {
            self.poisoned.store(true, Ordering::Relaxed);
        }
        outcome.ok()
    }
}

/// Run code on two values, as [`Guard::run`] does.
pub(crate) fn run_both<A, B, R>(
    mut first: Guard<'_, A>,
    mut second: Guard<'_, B>,
    f: impl FnOnce(&mut A, &mut B) -> R,
) -> Option<R> {
    let outcome = catch_unwind(AssertUnwindSafe(|| f(&mut first.value, &mut second.value)));
    if outcome.is_err() {
        first.poisoned.store(true, Ordering::Relaxed);
        second.poisoned.store(true, Ordering::Relaxed);
    }
    outcome.ok()
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
