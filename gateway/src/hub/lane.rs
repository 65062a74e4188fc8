//! What waits for one socket: durable frames, and streamed text that is dropped first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use askwell_shared::ports::Delta;
use tokio::sync::Notify;

/// Durable frames that wait at most (PROTOCOL 4.4).
const MOST_FRAMES: usize = 64;
/// Bytes of durable frames that wait at most.
const MOST_BYTES: usize = 256 * 1024;
/// Bytes of one piece of streamed text: JSON makes six of some, and a frame has 64 KiB.
const LONGEST_PIECE: usize = 8 * 1024;
/// Bytes of streamed text that wait at most.
const MOST_TEXT: usize = 32 * 1024;

/// Two bounded queues of one socket: the hub fills them and never waits, the socket takes.
pub struct Lane {
    deltas: bool,
    inner: Mutex<Inner>,
    woken: Notify,
}

#[derive(Default)]
struct Inner {
    items: VecDeque<Item>,
    /// Frames among the items, and their bytes.
    frames: usize,
    bytes: usize,
    /// Frames were dropped; until the socket says that it reads the log, no more are kept.
    overflowed: bool,
    /// The newest known head of the owner.
    head: u64,
}

/// One thing to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A durable frame with its `seq`.
    Frame(u64, Arc<str>),
    /// Streamed text.
    Piece(Piece),
}

/// Streamed text, joined as far as it belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The run.
    pub run: String,
    /// The turn.
    pub turn: u32,
    /// Which try of the model call.
    pub attempt: u64,
    /// Where it begins, in UTF-16 units.
    pub offset: u64,
    /// The text.
    pub text: String,
}

/// What a socket takes out of its lane.
#[derive(Debug, Default, PartialEq)]
pub struct Load {
    /// Frames and streamed text in the order in which they came.
    pub items: VecDeque<Item>,
    /// Frames were dropped here: the log has them.
    pub overflowed: bool,
    /// The newest known head of the owner.
    pub head: u64,
}

impl Lane {
    pub(super) fn new(deltas: bool) -> Self {
        Lane {
            deltas,
            inner: Mutex::default(),
            woken: Notify::new(),
        }
    }

    /// Adds the frames of a commit. What does not fit empties the lane: the socket reads the log
    /// then, and the frames of a slow reader take no memory.
    pub(super) fn push(&self, frames: &[(u64, Arc<str>)]) {
        let mut inner = self.inner();
        for (seq, frame) in frames {
            inner.head = inner.head.max(*seq);
            inner.items.retain(|item| !ends(frame, item));
            if inner.overflowed {
                continue;
            }
            inner.frames += 1;
            inner.bytes += frame.len();
            inner.items.push_back(Item::Frame(*seq, frame.clone()));
            if inner.frames > MOST_FRAMES || inner.bytes > MOST_BYTES {
                inner.empty();
                inner.overflowed = true;
            }
        }
        drop(inner);
        self.woken.notify_one();
    }

    /// Adds streamed text; what does not fit is dropped, all of it, since a piece without the
    /// one before it is of no use.
    pub(super) fn stream(&self, delta: &Delta) {
        if !self.deltas {
            return;
        }
        let mut inner = self.inner();
        let waiting: usize = inner.pieces().map(|piece| piece.text.len()).sum();
        if inner.overflowed || waiting + delta.text.len() > MOST_TEXT {
            inner.items.retain(|item| matches!(item, Item::Frame(..)));
            return;
        }
        let joined = inner.pieces().rfind(|piece| joins(piece, delta));
        let joined = joined.map(|piece| piece.text.push_str(&delta.text));
        if joined.is_none() {
            inner
                .items
                .extend(pieces(delta).into_iter().map(Item::Piece));
        }
        drop(inner);
        self.woken.notify_one();
    }

    /// Tells of the owner's head in the store.
    pub(super) fn head(&self, head: u64) {
        let mut inner = self.inner();
        let news = head > inner.head;
        inner.head = inner.head.max(head);
        drop(inner);
        if news {
            self.woken.notify_one();
        }
    }

    /// Waits until something may be there to take.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Takes all that waits. After an overflow the lane keeps frames again from now on, so the
    /// log must be read after this call, not before.
    pub fn take(&self) -> Load {
        let mut inner = self.inner();
        let items = inner.empty();
        Load {
            items,
            overflowed: std::mem::take(&mut inner.overflowed),
            head: inner.head,
        }
    }

    /// The newest known head of the owner.
    pub fn known_head(&self) -> u64 {
        self.inner().head
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn pieces(&mut self) -> impl DoubleEndedIterator<Item = &mut Piece> {
        self.items.iter_mut().filter_map(|item| match item {
            Item::Piece(piece) => Some(piece),
            Item::Frame(..) => None,
        })
    }

    fn empty(&mut self) -> VecDeque<Item> {
        self.frames = 0;
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }
}

/// Whether `delta` goes on where `piece` ends.
fn joins(piece: &Piece, delta: &Delta) -> bool {
    piece.run == delta.run.as_str()
        && piece.turn == delta.turn
        && piece.attempt == delta.attempt
        && piece.offset + units(&piece.text) == delta.offset
        && piece.text.len() + delta.text.len() <= LONGEST_PIECE
}

/// The text cut into pieces that fit a frame.
fn pieces(delta: &Delta) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = delta.text.as_str();
    let mut offset = delta.offset;
    while !rest.is_empty() {
        let mut end = rest.len().min(LONGEST_PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (text, after) = rest.split_at(end);
        pieces.push(Piece {
            run: delta.run.as_str().to_owned(),
            turn: delta.turn,
            attempt: delta.attempt,
            offset,
            text: text.to_owned(),
        });
        offset += units(text);
        rest = after;
    }
    pieces
}

fn units(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// Whether a frame is the finished message that a piece is a part of: after it no text of that
/// turn may be sent (PROTOCOL 2). Frames are made in one place, with `type` and `run` in front.
fn ends(frame: &str, item: &Item) -> bool {
    let Item::Piece(piece) = item else {
        return false;
    };
    frame
        .split_once("\"type\":\"run.message\",\"run\":\"")
        .is_some_and(|(before, after)| before.len() < 40 && after.starts_with(&piece.run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use askwell_shared::id::{Owner, RunId};
    use askwell_shared::wire::{Frame, with_seq};

    fn frames(seqs: std::ops::RangeInclusive<u64>, text: &str) -> Vec<(u64, Arc<str>)> {
        seqs.map(|seq| (seq, Arc::from(text))).collect()
    }

    fn run() -> RunId {
        RunId::new(1, uuid::Uuid::nil())
    }

    fn delta(turn: u32, offset: u64, text: &str) -> Delta {
        Delta {
            owner: Owner::Person("ann".into()),
            run: run(),
            turn,
            attempt: 1,
            offset,
            text: text.into(),
        }
    }

    fn seqs(load: &Load) -> Vec<u64> {
        let seq = |item: &Item| match item {
            Item::Frame(seq, _) => Some(*seq),
            Item::Piece(_) => None,
        };
        load.items.iter().filter_map(seq).collect()
    }

    fn texts(load: &Load) -> Vec<Piece> {
        let piece = |item: &Item| match item {
            Item::Piece(piece) => Some(piece.clone()),
            Item::Frame(..) => None,
        };
        load.items.iter().filter_map(piece).collect()
    }

    #[test]
    fn frames_come_out_in_order() {
        let lane = Lane::new(true);
        lane.push(&frames(4..=5, "{}"));
        lane.push(&frames(6..=6, "{}"));
        let load = lane.take();
        assert_eq!(seqs(&load), [4, 5, 6]);
        assert_eq!((load.overflowed, load.head), (false, 6));
        assert_eq!(lane.take().items.len(), 0);
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_said_so() {
        for (numbers, text) in [(1..=65, "{}".to_owned()), (1..=5, "x".repeat(60 * 1024))] {
            let lane = Lane::new(true);
            lane.push(&frames(numbers, &text));
            lane.push(&frames(66..=66, "{}"));
            let load = lane.take();
            assert!(load.overflowed);
            assert_eq!((load.items.len(), load.head), (0, 66));
            // From here on frames are kept again.
            lane.push(&frames(67..=67, "{}"));
            let load = lane.take();
            assert!(!load.overflowed);
            assert_eq!(seqs(&load), [67]);
        }
    }

    #[test]
    fn exactly_what_fits_stays() {
        let lane = Lane::new(true);
        lane.push(&frames(1..=64, "{}"));
        let load = lane.take();
        assert_eq!((load.items.len(), load.overflowed), (64, false));
        lane.push(&frames(65..=128, "{}"));
        assert!(!lane.take().overflowed);
    }

    #[test]
    fn text_is_joined_and_never_splits_a_character() {
        let lane = Lane::new(true);
        lane.stream(&delta(1, 0, "a\u{1F600}"));
        lane.stream(&delta(1, 3, "b"));
        lane.stream(&delta(1, 9, "gap"));
        let pieces = texts(&lane.take());
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0].text, "a\u{1F600}b");
        assert_eq!(pieces[1].offset, 9);

        let long = "\u{1F600}".repeat(5000);
        lane.stream(&delta(1, 7, &long));
        let pieces = texts(&lane.take());
        let whole: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(whole, long);
        assert!(pieces.iter().all(|piece| piece.text.len() <= LONGEST_PIECE));
        let mut at = 7;
        for piece in &pieces {
            assert_eq!(piece.offset, at);
            at += units(&piece.text);
        }
    }

    #[test]
    fn too_much_text_is_dropped_and_frames_are_not() {
        let lane = Lane::new(true);
        lane.push(&frames(1..=1, "{}"));
        for at in 0..10 {
            lane.stream(&delta(1, at * 8000, &"x".repeat(8000)));
        }
        let load = lane.take();
        let text: usize = texts(&load).iter().map(|piece| piece.text.len()).sum();
        assert!(text <= MOST_TEXT);
        assert_eq!(seqs(&load), [1]);
    }

    #[test]
    fn no_text_follows_the_finished_message() {
        let lane = Lane::new(true);
        lane.stream(&delta(1, 0, "M it"));
        let message = with_seq(&Frame::assistant(&run(), 1, "M it is.", &[]).text(), 9);
        lane.push(&[(9, Arc::from(message))]);
        lane.stream(&delta(2, 0, "next"));
        let load = lane.take();
        // The next turn's text stays, and behind the message before it.
        assert_eq!(load.items.len(), 2);
        assert_eq!(texts(&load)[0].text, "next");
        assert!(matches!(load.items[0], Item::Frame(9, _)));

        lane.stream(&delta(2, 4, "more"));
        lane.push(&frames(10..=10, r#"{"seq":10,"type":"run.status"}"#));
        let load = lane.take();
        assert!(matches!(load.items[0], Item::Piece(_)));
        assert_eq!(seqs(&load), [10]);
    }

    #[test]
    fn who_wants_no_text_gets_none() {
        let lane = Lane::new(false);
        lane.stream(&delta(1, 0, "text"));
        assert_eq!(lane.take().items.len(), 0);
    }
}
