//! The frames of a socket that no commit makes (PROTOCOL 2).

use serde_json::{Map, Value, json};

use crate::calls::Done;
use crate::hub::Piece;
use crate::refusal::Refusal;

/// A ping each so many seconds.
pub(super) const PING_S: u64 = 25;
/// Its pong must be back within so many seconds.
pub(super) const DEADLINE_S: u64 = 8;

pub(super) fn hello(node: &str) -> String {
    json!({
        "type": "hello", "v": 1, "node": node, "pingS": PING_S, "deadlineS": DEADLINE_S,
    })
    .to_string()
}

pub(super) fn welcome(
    epoch: &str,
    seq: u64,
    why: Option<&str>,
    sub: &str,
    roles: &[String],
) -> String {
    let mut frame = json!({
        "type": "welcome",
        "epoch": epoch,
        "seq": seq,
        "mode": if why.is_some() { "snapshot" } else { "resumed" },
    });
    if let Some(why) = why {
        frame["why"] = why.into();
    }
    frame["you"] = json!({ "sub": sub, "roles": roles });
    frame.to_string()
}

pub(super) fn ping(head: u64) -> String {
    json!({ "type": "ping", "head": head }).to_string()
}

pub(super) fn delta(piece: &Piece) -> String {
    json!({
        "type": "run.delta",
        "run": piece.run,
        "turn": piece.turn,
        "attempt": piece.attempt,
        "offset": piece.offset,
        "text": piece.text,
    })
    .to_string()
}

pub(super) fn ok(cmd: &str, done: Done) -> String {
    let mut frame = named("ok", Some(cmd));
    frame.extend(done.reply);
    frame.insert("seq".into(), done.seq.into());
    Value::Object(frame).to_string()
}

/// The `ok` of a command that changes nothing in the store.
pub(super) fn plain_ok(cmd: &str) -> String {
    Value::Object(named("ok", Some(cmd))).to_string()
}

pub(super) fn error(cmd: Option<&str>, refusal: &Refusal) -> String {
    let mut frame = named("error", cmd);
    refusal.write_to(&mut frame);
    Value::Object(frame).to_string()
}

fn named(kind: &str, cmd: Option<&str>) -> Map<String, Value> {
    let mut frame = Map::new();
    frame.insert("type".into(), kind.into());
    if let Some(cmd) = cmd {
        frame.insert("cmd".into(), cmd.into());
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_bear_their_command() {
        let mut reply = Map::new();
        reply.insert("run".into(), "run_1".into());
        let frame: Value = serde_json::from_str(&ok("c-1", Done { reply, seq: 7 })).unwrap();
        let expected = json!({"type": "ok", "cmd": "c-1", "run": "run_1", "seq": 7});
        assert_eq!(frame, expected);
        let frame: Value = serde_json::from_str(&error(None, &Refusal::not_found())).unwrap();
        assert_eq!(frame.get("cmd"), None);
        assert_eq!(frame["code"], "T0001");
        assert_eq!(frame["temporary"], false);
    }

    #[test]
    fn a_welcome_says_why_only_with_a_snapshot() {
        let resumed: Value =
            serde_json::from_str(&welcome("e", 3, None, "ann", &["staff".into()])).unwrap();
        let you = json!({"sub": "ann", "roles": ["staff"]});
        let expected =
            json!({"type": "welcome", "epoch": "e", "seq": 3, "mode": "resumed", "you": you});
        assert_eq!(resumed, expected);
        let new: Value = serde_json::from_str(&welcome("e", 3, Some("new"), "ann", &[])).unwrap();
        assert_eq!(
            (&new["mode"], &new["why"]),
            (&json!("snapshot"), &json!("new"))
        );
    }
}
