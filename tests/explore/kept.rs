//! Values that many states share.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A value that is hashed once, however many states hold it.
pub(crate) struct Kept<T> {
    hash: u64,
    value: Arc<T>,
}

impl<T: Hash> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Kept {
            hash: hasher.finish(),
            value: Arc::new(value),
        }
    }
}

impl<T> Kept<T> {
    /// Whether this is the very value, not only an equal one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Kept {
            hash: self.hash,
            value: Arc::clone(&self.value),
        }
    }
}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
