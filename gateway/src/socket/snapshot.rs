//! An owner's state in parts that fit a frame (PROTOCOL 2, `snapshot`).

use askwell_shared::ports::Snapshot;
use askwell_shared::wire::{AskView, MAX_FRAME};

use crate::refusal::to_value;

/// Room for what is around the items of a part.
const ROOM: usize = 256;

/// The parts, the last with `more: false`.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<String> {
    let asks = snapshot
        .asks
        .iter()
        .map(|ask| (true, to_value(&AskView::framed(ask)).to_string()));
    let runs = snapshot
        .runs
        .iter()
        .map(|run| (false, to_value(run).to_string()));
    let mut parts = vec![Part::default()];
    for (is_ask, item) in asks.chain(runs) {
        if !parts.last().is_some_and(|part| part.takes(&item)) {
            parts.push(Part::default());
        }
        if let Some(part) = parts.last_mut() {
            part.add(is_ask, &item);
        }
    }
    let last = parts.len() - 1;
    parts
        .iter()
        .enumerate()
        .map(|(number, part)| part.text(snapshot.seq, number < last))
        .collect()
}

#[derive(Default)]
struct Part {
    asks: String,
    runs: String,
}

impl Part {
    fn takes(&self, item: &str) -> bool {
        let used = self.asks.len() + self.runs.len();
        used == 0 || used + item.len() < MAX_FRAME - ROOM
    }

    fn add(&mut self, is_ask: bool, item: &str) {
        let list = if is_ask {
            &mut self.asks
        } else {
            &mut self.runs
        };
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(item);
    }

    fn text(&self, seq: u64, more: bool) -> String {
        let Part { asks, runs } = self;
        format!(
            r#"{{"type":"snapshot","seq":{seq},"asks":[{asks}],"runs":[{runs}],"more":{more}}}"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use askwell_shared::ask::{Ask, Kind};
    use askwell_shared::id::RunId;
    use askwell_shared::time::Millis;
    use askwell_shared::wire::LiveRun;
    use serde_json::{Map, Value, json};

    fn ask(number: usize, text: &str) -> Ask {
        Ask {
            id: format!("ask_{number}"),
            run: RunId::new(1, uuid::Uuid::nil()),
            agent: "asker".into(),
            turn: 1,
            call: 0,
            step: format!("question 1.{number}"),
            repeat: 1,
            kind: Kind::Question,
            tool: "question".into(),
            input: json!({ "question": text }),
            questions: 1,
            editable: None,
            opened: Millis(0),
            deadline: Millis(1),
            drafts: Map::new(),
            settled: None,
        }
    }

    fn snapshot(asks: Vec<Ask>, runs: usize) -> Snapshot {
        let run = LiveRun {
            run: RunId::new(1, uuid::Uuid::nil()),
            agent: "asker".into(),
            thread: None,
            status: "waiting",
            rev: 3,
        };
        Snapshot {
            now: Millis(0),
            epoch: "e".into(),
            seq: 9,
            asks,
            runs: vec![run; runs],
        }
    }

    fn read(snapshot: &Snapshot) -> Vec<Value> {
        let parts = parts(snapshot);
        assert!(parts.iter().all(|part| part.len() <= MAX_FRAME));
        parts
            .iter()
            .map(|part| serde_json::from_str(part).unwrap())
            .collect()
    }

    #[test]
    fn nothing_is_one_empty_part() {
        let expected = json!({"type": "snapshot", "seq": 9, "asks": [], "runs": [], "more": false});
        assert_eq!(read(&snapshot(vec![], 0)), [expected]);
    }

    #[test]
    fn every_ask_and_run_comes_once_and_in_order() {
        let long = "w".repeat(10_000);
        let asks: Vec<Ask> = (0..30).map(|number| ask(number, &long)).collect();
        let parts = read(&snapshot(asks, 2000));
        let all = |name: &str| -> Vec<Value> {
            parts
                .iter()
                .flat_map(|part| part[name].as_array().unwrap().clone())
                .collect()
        };
        let ids: Vec<Value> = all("asks").iter().map(|ask| ask["id"].clone()).collect();
        let expected: Vec<Value> = (0..30)
            .map(|number| json!(format!("ask_{number}")))
            .collect();
        assert_eq!(ids, expected);
        assert_eq!(all("runs").len(), 2000);
        let (last, others) = parts.split_last().unwrap();
        assert_eq!(last["more"], false);
        assert!(
            others
                .iter()
                .all(|part| part["more"] == true && part["seq"] == 9)
        );
    }

    #[test]
    fn an_ask_longer_than_a_frame_is_cut_and_says_so() {
        let mut drafted = ask(0, "short");
        drafted
            .drafts
            .insert("q1".into(), "x".repeat(70_000).into());
        let parts = read(&snapshot(vec![drafted, ask(1, &"x".repeat(70_000))], 0));
        let asks: Vec<&Value> = parts
            .iter()
            .flat_map(|part| part["asks"].as_array().unwrap())
            .collect();
        assert_eq!(asks[0]["truncated"], true);
        assert_eq!(asks[0]["input"]["question"], "short");
        assert_eq!(asks[1]["input"], Value::Null);
    }
}
