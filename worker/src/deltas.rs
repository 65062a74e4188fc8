//! Streamed text on its way to screens: pieces are joined, so that a fast model costs few
//! messages, and none is sent after its turn is saved.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use askwell_shared::id::{Owner, RunId};
use askwell_shared::ports::{Delta, Feed};

/// How long pieces are joined before they are sent.
const JOIN: Duration = Duration::from_millis(30);

/// The most bytes of text in one message; longer ones are sent in parts.
const MOST: usize = 16 * 1024;

/// Which try of which turn streams, and to whom.
#[derive(Debug, Clone)]
pub struct Streaming {
    /// Whose screens.
    pub owner: Owner,
    /// Where they are.
    pub online: Vec<String>,
    /// The run.
    pub run: RunId,
    /// The turn.
    pub turn: u32,
    /// The try; a later one has a larger number.
    pub attempt: u64,
}

/// Takes pieces and sends them joined.
pub struct Deltas {
    pieces: UnboundedSender<String>,
    joiner: JoinHandle<()>,
}

impl Deltas {
    /// Begins to stream.
    pub fn start(feed: Arc<dyn Feed>, to: Streaming) -> Self {
        // Unbounded, since the model's own stream bounds it: a turn's text is in memory anyway.
        let (pieces, queue) = unbounded_channel();
        let joiner = tokio::spawn(join(feed, to, queue));
        Deltas { pieces, joiner }
    }

    /// Takes a piece.
    pub fn push(&self, piece: &str) {
        let _ = self.pieces.send(piece.to_owned());
    }

    /// Sends what is left, and ends.
    pub async fn finish(self) {
        drop(self.pieces);
        let _ = self.joiner.await;
    }
}

async fn join(feed: Arc<dyn Feed>, to: Streaming, mut queue: UnboundedReceiver<String>) {
    let mut offset = 0;
    while let Some(mut text) = queue.recv().await {
        let until = tokio::time::Instant::now() + JOIN;
        let mut ended = false;
        while text.len() < MOST && !ended {
            match tokio::time::timeout_at(until, queue.recv()).await {
                Ok(Some(piece)) => text.push_str(&piece),
                Ok(None) => ended = true,
                Err(_) => break,
            }
        }
        for part in parts(&text) {
            let delta = Delta {
                owner: to.owner.clone(),
                run: to.run.clone(),
                turn: to.turn,
                attempt: to.attempt,
                offset,
                text: part.to_owned(),
            };
            offset += part.encode_utf16().count() as u64;
            feed.stream(Arc::new(delta), &to.online);
        }
    }
}

/// Cuts at characters, so that no UTF-16 pair is split.
fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (part, rest) = text.split_at(text.floor_char_boundary(MOST));
        text = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_characters() {
        let text = "é".repeat(MOST);
        let cut: Vec<&str> = parts(&text).collect();
        assert_eq!(cut.concat(), text);
        assert!(cut.iter().all(|part| part.len() <= MOST));
        assert_eq!(parts("").count(), 0);
    }
}
