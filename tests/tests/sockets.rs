//! The socket `askwell.v1` against a real process (PROTOCOL 1 to 4, 7).
#![allow(clippy::unwrap_used, reason = "what cannot be set up fails the test")]

use askwell_tests::askwell::client::{Client, LIMIT, Offer, Shook, token};
use askwell_tests::askwell::{Askwell, SECRET};
use rustix::process::Signal;
use serde_json::{Value, json};

/// One question with choices, then a text.
const AGENTS: &str = r#"
[models.asker]
provider = "scripted"
turns = [
  { text = "Hello.", calls = [
    { tool = "question", input = { question = "Which size?", choices = ["S", "M", "L"] } },
  ] },
  { text = "{{answer}} it is." },
]

[agents.asker]
model = "asker"
questions = true
"#;

async fn askwell() -> Askwell {
    Askwell::start(AGENTS).await.unwrap()
}

fn offer(protocols: &[&str]) -> Offer {
    Offer {
        protocols: protocols.iter().map(ToString::to_string).collect(),
        ..Offer::default()
    }
}

/// What is offered, and the protocol or the status that comes back.
type Row = (&'static str, Offer, Result<Option<&'static str>, u16>);

#[tokio::test]
async fn handshakes() {
    let askwell = askwell().await;
    let good = askwell.token("ann", &[]).unwrap();
    let expired = token(SECRET, "ann", &[], -60).unwrap();
    let bearer = |token: &str| format!("bearer.{token}");
    let header = |token: &str| ("authorization".to_owned(), format!("Bearer {token}"));
    let with = |mut offer: Offer, name: &str, value: &str| {
        offer.headers.push((name.to_owned(), value.to_owned()));
        offer
    };

    let one_line = format!("askwell.v1, {}", bearer(&good));
    let token_first = format!("{}, askwell.v1", bearer(&good));
    let mut only_header = offer(&[]);
    only_header.headers.push(header(&good));
    let mut bad_header = offer(&[]);
    bad_header.headers.push(header(&expired));
    let mut in_query = offer(&["askwell.v1"]);
    in_query.query = format!("?token={good}");
    let foreign = with(offer(&["askwell.v1"]), "origin", "https://evil.example");
    let own = with(offer(&["askwell.v1"]), "origin", &askwell.base());
    let rows: Vec<Row> = vec![
        ("with a token", offer(&[&one_line]), Ok(Some("askwell.v1"))),
        (
            "token first",
            offer(&[&token_first]),
            Ok(Some("askwell.v1")),
        ),
        (
            "two lines",
            offer(&["askwell.v1", &bearer(&good)]),
            Ok(Some("askwell.v1")),
        ),
        (
            "without a token",
            offer(&["askwell.v1"]),
            Ok(Some("askwell.v1")),
        ),
        ("header only", only_header, Ok(None)),
        ("token only", offer(&[&bearer(&good)]), Err(400)),
        ("unknown", offer(&["chat"]), Err(400)),
        ("other case", offer(&["ASKWELL.V1"]), Err(400)),
        ("nothing", offer(&[]), Err(400)),
        (
            "bad token",
            offer(&["askwell.v1", &bearer(&expired)]),
            Err(401),
        ),
        ("bad header", bad_header, Err(401)),
        ("token in the address", in_query, Err(401)),
        ("foreign page", foreign, Err(403)),
        // With a secret set, pages must be listed, whoever serves them.
        ("unlisted page", own, Err(403)),
    ];
    for (name, offer, expected) in rows {
        // A client that offers several and gets one back is content; the library checks that.
        match Client::shake(&askwell.base(), &offer).await.unwrap() {
            Shook::Open(_, chosen) => assert_eq!(Ok(chosen.as_deref()), expected, "{name}"),
            Shook::Refused(status, body) => {
                assert_eq!(Err(status), expected, "{name}: {body}");
                assert!(!body.contains(&good) && !body.contains(&expired), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_before_the_upgrade_needs_none_in_hello() {
    let askwell = askwell().await;
    let bearer = format!("bearer.{}", askwell.token("ann", &[]).unwrap());
    let shaken = Client::shake(&askwell.base(), &offer(&["askwell.v1", &bearer])).await;
    let Shook::Open(mut client, _) = shaken.unwrap() else {
        panic!("refused")
    };
    client.hello(json!({})).await.unwrap();
    assert_eq!(client.welcome["you"]["sub"], "ann");
    assert_eq!(client.welcome["mode"], "snapshot");
    assert_eq!(client.welcome["why"], "new");
}

#[tokio::test]
async fn ends_before_the_welcome() {
    let askwell = askwell().await;
    let base = askwell.base();
    let expired = token(SECRET, "ann", &[], -60).unwrap();
    let system = askwell.token("shop", &["system"]).unwrap();
    for (frame, code) in [
        (json!({"type": "cancel", "cmd": "c", "run": "r"}), 4001),
        (json!({"type": "pong", "seq": 0}), 4001),
        (json!({"type": "hello"}), 4301),
        (json!({"type": "hello", "token": expired}), 4301),
        (json!({"type": "hello", "token": "x"}), 4301),
        (json!({"type": "hello", "token": system}), 4003),
    ] {
        let mut client = Client::connect(&base).await.unwrap();
        client.send(&frame).await.unwrap();
        assert_eq!(client.closed().await.unwrap(), code, "{frame}");
    }
    let mut silent = Client::connect(&base).await.unwrap();
    let hello = silent.next("hello").await.unwrap();
    assert_eq!(
        (&hello["v"], &hello["pingS"], &hello["deadlineS"]),
        (&json!(1), &json!(25), &json!(8))
    );
    assert_eq!(silent.closed().await.unwrap(), 4001);
}

#[tokio::test]
async fn what_is_no_text_frame_of_bounded_length_ends_the_socket() {
    let askwell = askwell().await;
    let mut binary = askwell.client("ann").await.unwrap();
    binary.send_binary(b"{}").await.unwrap();
    assert_eq!(binary.closed().await.unwrap(), 1003);

    let mut long = askwell.client("ann").await.unwrap();
    let frame = json!({"type": "pong", "seq": 0, "x": "x".repeat(70_000)});
    long.send(&frame).await.unwrap();
    assert_eq!(long.closed().await.unwrap(), 1009);

    let mut longest = askwell.client("ann").await.unwrap();
    let room = 64 * 1024 - json!({"type": "nothing", "x": ""}).to_string().len();
    let frame = json!({"type": "nothing", "x": "x".repeat(room)});
    longest.send(&frame).await.unwrap();
    assert_eq!(longest.next("error").await.unwrap()["code"], "T0006");
}

#[tokio::test]
async fn a_malformed_frame_is_told_and_the_socket_stays() {
    let askwell = askwell().await;
    let mut client = askwell.client("ann").await.unwrap();
    for (text, cmd) in [
        ("", None),
        ("{\"run\":\"R1\",\"step\":\"question 1.1\",\"data\":", None),
        ("[]", None),
        (r#"{"type":"cancel","cmd":"c-1"}"#, Some("c-1")),
        (
            r#"{"type":"approve","cmd":"c-2","run":"r","step":1}"#,
            Some("c-2"),
        ),
        (r#"{"type":"cancel","cmd":"a b","run":"r"}"#, None),
        (r#"{"type":"cancel","run":"r"}"#, None),
        (
            r#"{"type":"approve","cmd":"c-3","run":"r","run":"s","step":"x"}"#,
            None,
        ),
        (r#"{"type":"no such","cmd":"c-4"}"#, Some("c-4")),
        (r#"{"type":"hello"}"#, None),
    ] {
        client.send_text(text).await.unwrap();
        let error = client.next("error").await.unwrap();
        assert_eq!(error["code"], "T0006", "{text}");
        assert_eq!(error.get("cmd").and_then(Value::as_str), cmd, "{text}");
    }
    let run = client.start("asker", "still here").await.unwrap();
    client.run_is(&run, "waiting").await.unwrap();
}

/// The frames without what differs from run to run.
fn shape(frames: &[Value]) -> Vec<String> {
    frames
        .iter()
        .map(|frame| {
            let kind = frame["type"].as_str().unwrap();
            match kind {
                "run.status" => format!("status {}", frame["status"].as_str().unwrap()),
                "run.message" => format!(
                    "message {} {}: {}",
                    frame["turn"],
                    frame["role"].as_str().unwrap(),
                    frame["text"].as_str().unwrap()
                ),
                "ask.opened" => format!("opened {}", frame["ask"]["step"].as_str().unwrap()),
                "ask.settled" => format!(
                    "settled {} {}",
                    frame["outcome"].as_str().unwrap(),
                    frame["data"]
                ),
                other => other.to_owned(),
            }
        })
        .collect()
}

#[tokio::test]
async fn the_trace_of_one_question() {
    let askwell = askwell().await;
    let mut client = askwell.client("ann").await.unwrap();
    let run = client.start("asker", "a T-shirt, please").await.unwrap();
    let mut frames = client
        .durable_until(|frame| frame["status"] == "waiting")
        .await
        .unwrap();
    let ok = client.approve(&run, "question 1.1", "M").await.unwrap();
    assert_eq!(
        (&ok["type"], &ok["outcome"]),
        (&json!("ok"), &json!("answered"))
    );
    frames.extend(
        client
            .durable_until(|frame| frame["status"] == "succeeded")
            .await
            .unwrap(),
    );
    assert_eq!(
        shape(&frames),
        [
            "status queued",
            "message 0 user: a T-shirt, please",
            "status running",
            "message 1 assistant: Hello.",
            "opened question 1.1",
            "status waiting",
            "settled answered \"M\"",
            "status queued",
            "status running",
            "message 2 assistant: M it is.",
            "status succeeded",
        ]
    );
    let seqs: Vec<u64> = frames
        .iter()
        .map(|frame| frame["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=11).collect::<Vec<u64>>());
    // The answer's own frames are numbers 7 and 8; `ok` bears the last of its commit.
    assert_eq!(ok["seq"], 8);
    assert_eq!(frames[6]["by"]["sub"], "ann");
    assert_eq!(frames[10]["output"], "M it is.");
}

#[tokio::test]
async fn a_wrong_answer_leaves_the_ask_and_a_late_one_hears_how_it_ended() {
    let askwell = askwell().await;
    let mut client = askwell.client("ann").await.unwrap();
    let mut other = askwell.client("ann").await.unwrap();
    let run = client.start("asker", "hi").await.unwrap();
    client.asked(&run).await.unwrap();

    for wrong in [json!("XL"), json!({"choice": "M"}), json!(null), json!("m")] {
        let error = client
            .approve(&run, "question 1.1", wrong.clone())
            .await
            .unwrap();
        assert_eq!(error["code"], "T0002", "{wrong}");
        assert_eq!(error["errors"][0]["rule"], "choices", "{wrong}");
    }
    let none = json!({"type": "approve", "run": run, "step": "question 1.1"});
    assert_eq!(client.command(none).await.unwrap()["code"], "T0002");
    let other_step = client.approve(&run, "question 1.2", "M").await.unwrap();
    assert_eq!(other_step["code"], "T0001");

    let cmd =
        json!({"type": "approve", "cmd": "c-9", "run": run, "step": "question 1.1", "data": "M"});
    let ok = client.command(cmd.clone()).await.unwrap();
    assert_eq!(ok["type"], "ok", "{ok}");
    let late = other.approve(&run, "question 1.1", "L").await.unwrap();
    assert_eq!(late["code"], "T0003");
    assert_eq!(late["settled"]["outcome"], "answered");
    assert_eq!(late["settled"]["by"]["sub"], "ann");
    for client in [&mut client, &mut other] {
        let settled = client.next("ask.settled").await.unwrap();
        assert_eq!(
            (&settled["data"], &settled["cmd"]),
            (&json!("M"), &json!("c-9"))
        );
        client.run_is(&run, "succeeded").await.unwrap();
    }

    // The same command after the end of the run: the same reply. Another body: T0004.
    assert_eq!(client.command(cmd.clone()).await.unwrap(), ok);
    assert_eq!(other.command(cmd.clone()).await.unwrap(), ok);
    let mut changed = cmd;
    changed["data"] = "L".into();
    assert_eq!(client.command(changed).await.unwrap()["code"], "T0004");
}

#[tokio::test]
async fn who_comes_back_gets_what_was_missed_and_nothing_twice() {
    let askwell = askwell().await;
    let base = askwell.base();
    let token = askwell.token("ann", &[]).unwrap();
    let mut first = Client::open(&base, &token).await.unwrap();
    let epoch = first.epoch().to_owned();
    let run = first.start("asker", "hi").await.unwrap();
    let frames = first
        .durable_until(|frame| frame["status"] == "waiting")
        .await
        .unwrap();
    first.leave().await.unwrap();

    let mut back = Client::resume(&base, &token, &epoch, 2).await.unwrap();
    assert_eq!(back.welcome["mode"], "resumed");
    assert_eq!(back.welcome["seq"], 6);
    let again = back
        .durable_until(|frame| frame["status"] == "waiting")
        .await
        .unwrap();
    assert_eq!(again, frames[2..]);
    back.approve(&run, "question 1.1", "S").await.unwrap();
    let rest = back
        .durable_until(|frame| frame["status"] == "succeeded")
        .await
        .unwrap();
    assert_eq!(rest[0]["seq"], 7);

    // A resync on the same socket sends them again, from where the client says.
    back.send(&json!({"type": "resync", "seq": 9}))
        .await
        .unwrap();
    let again = back
        .durable_until(|frame| frame["status"] == "succeeded")
        .await
        .unwrap();
    assert_eq!(again, rest[3..]);

    let mut up_to_date = Client::resume(&base, &token, &epoch, 11).await.unwrap();
    assert_eq!(
        (&up_to_date.welcome["mode"], &up_to_date.welcome["seq"]),
        (&json!("resumed"), &json!(11))
    );
    up_to_date.start("asker", "next").await.unwrap();
    assert_eq!(up_to_date.next("run.status").await.unwrap()["seq"], 12);
    for (epoch, seq, why) in [(epoch.as_str(), 1000, "ahead"), ("another", 3, "epoch")] {
        let mut client = Client::resume(&base, &token, epoch, seq).await.unwrap();
        assert_eq!(
            (&client.welcome["mode"], &client.welcome["why"]),
            (&json!("snapshot"), &json!(why))
        );
        let snapshot = client.next("snapshot").await.unwrap();
        assert_eq!(
            (&snapshot["seq"], &snapshot["more"]),
            (&client.welcome["seq"], &json!(false))
        );
    }
}

#[tokio::test]
async fn a_snapshot_holds_what_is_open_for_this_person_alone() {
    let askwell = askwell().await;
    let mut ann = askwell.client("ann").await.unwrap();
    let run = ann.start("asker", "hi").await.unwrap();
    ann.run_is(&run, "waiting").await.unwrap();
    let mut again = askwell.client("ann").await.unwrap();
    let snapshot = again.next("snapshot").await.unwrap();
    assert_eq!(snapshot["asks"][0]["run"], run);
    assert_eq!(
        snapshot["asks"][0]["input"]["choices"],
        json!(["S", "M", "L"])
    );
    assert_eq!(snapshot["runs"][0]["status"], "waiting");
    let mut bob = askwell.client("bob").await.unwrap();
    let snapshot = bob.next("snapshot").await.unwrap();
    assert_eq!(
        (&snapshot["asks"], &snapshot["runs"]),
        (&json!([]), &json!([]))
    );
    // Nor does another hear of it, and their answer is not looked at.
    assert_eq!(
        bob.approve(&run, "question 1.1", "nonsense").await.unwrap()["code"],
        "T0001"
    );
    ann.approve(&run, "question 1.1", "M").await.unwrap();
    ann.run_is(&run, "succeeded").await.unwrap();
    let own = bob.start("asker", "mine").await.unwrap();
    let first = bob.durable_until(|_| true).await.unwrap();
    assert_eq!(
        (&first[0]["run"], &first[0]["seq"]),
        (&json!(own), &json!(1))
    );
}

#[tokio::test]
async fn a_token_is_renewed_in_place_and_only_for_the_same_person() {
    let askwell = askwell().await;
    let mut client = askwell.client("ann").await.unwrap();
    let auth = |token: String| json!({"type": "auth", "token": token});
    let same = askwell.token("ann", &["staff"]).unwrap();
    assert_eq!(client.command(auth(same)).await.unwrap()["type"], "ok");
    for other in [
        askwell.token("bob", &[]).unwrap(),
        askwell.token("ann", &["system"]).unwrap(),
        "x".to_owned(),
    ] {
        assert_eq!(client.command(auth(other)).await.unwrap()["code"], "T0009");
    }
    client.start("asker", "still ann").await.unwrap();
}

#[tokio::test]
async fn an_expired_token_ends_the_socket() {
    let askwell = askwell().await;
    // Within the leeway for clocks that differ, so it is welcomed; and at the end of its grace
    // some ten seconds later.
    let old = token(SECRET, "ann", &[], -4).unwrap();
    let mut client = Client::open(&askwell.base(), &old).await.unwrap();
    assert_eq!(client.closed().await.unwrap(), 4301);
}

#[tokio::test]
async fn a_stopping_process_ends_commands_and_says_connect_again() {
    let askwell = askwell().await;
    let mut client = askwell.client("ann").await.unwrap();
    let run = client.start("asker", "hi").await.unwrap();
    client.run_is(&run, "waiting").await.unwrap();
    askwell.process().signal(Signal::TERM).unwrap();
    assert_eq!(client.closed().await.unwrap(), 4201);
    let exit = askwell.process().end(LIMIT).await.unwrap();
    assert!(exit.success(), "{exit}");
}

#[tokio::test]
async fn two_answers_at_once_have_one_winner() {
    let askwell = askwell().await;
    let mut one = askwell.client("ann").await.unwrap();
    let mut two = askwell.client("ann").await.unwrap();
    for round in 0..20 {
        let run = one.start("asker", "hi").await.unwrap();
        one.asked(&run).await.unwrap();
        let (a, b) = tokio::join!(
            one.approve(&run, "question 1.1", "S"),
            two.approve(&run, "question 1.1", "L")
        );
        let replies = [a.unwrap(), b.unwrap()];
        let winners: Vec<usize> = (0..2).filter(|n| replies[*n]["type"] == "ok").collect();
        assert_eq!(winners.len(), 1, "round {round}: {replies:?}");
        let winner = ["S", "L"][winners[0]];
        let loser = &replies[1 - winners[0]];
        assert_eq!(loser["code"], "T0003", "{loser}");
        let ended = two.run_is(&run, "succeeded").await.unwrap();
        assert_eq!(ended["output"], format!("{winner} it is."));
    }
}
