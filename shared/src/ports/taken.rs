//! A hint that was taken, and what becomes of it.

use std::fmt;

use super::Hint;

/// A hint and the right to say that it has been acted on.
#[derive(Debug)]
pub struct Taken {
    /// The hint.
    pub hint: Hint,
    /// Says what became of it.
    pub ack: Ack,
}

/// Tells the backend that a hint has been acted on; dropped without that, it tells that it has
/// not. Neither waits for anything.
pub struct Ack {
    tries: u32,
    told: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl Ack {
    /// Of a hint that was given back `tries` times. `told` hears whether it was acted on.
    pub fn new(tries: u32, told: impl FnOnce(bool) + Send + 'static) -> Self {
        Ack {
            tries,
            told: Some(Box::new(told)),
        }
    }

    /// Of a hint about which nobody wants to hear.
    pub fn none() -> Self {
        Ack {
            tries: 0,
            told: None,
        }
    }

    /// How often the hint was given back before ([`super::Hints::later`]).
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// The run was claimed, or need not be: nobody else needs this hint.
    pub fn done(mut self) {
        if let Some(told) = self.told.take() {
            told(true);
        }
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            told(false);
        }
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ack({})", self.tries)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_became_of_a_hint_is_told_once() {
        let (tell, told) = channel();
        let other = tell.clone();
        Ack::new(0, move |done| tell.send(done).unwrap()).done();
        drop(Ack::new(0, move |done| other.send(done).unwrap()));
        assert_eq!(told.iter().collect::<Vec<bool>>(), [true, false]);
        Ack::none().done();
    }
}
