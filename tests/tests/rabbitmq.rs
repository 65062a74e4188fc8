//! Hints and the feed on RabbitMQ, with a private broker for each of two tests: one that is well,
//! and one that is killed, frozen, blocked and cut off.
#![allow(clippy::unwrap_used, reason = "a test's own functions fail the test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use askwell_shared::ask::{By, Outcome, Settlement};
use askwell_shared::backends::rabbitmq::{RabbitMq, open};
use askwell_shared::id::{Owner, RunId};
use askwell_shared::ports::{Delta, Heard, Hint, HintKind, Incoming, News, Settled, Taken};
use askwell_shared::time::Millis;
use askwell_shared::url::Url;
use askwell_tests::proxy::{Proxy, Swallow};
use askwell_tests::servers::Rabbit;
use futures_util::StreamExt;
use futures_util::future::{Either, join_all, select};
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(20);

/// A put says within this time what became of it.
const BOUND: Duration = Duration::from_secs(3);

/// Hints flow within this time after a broker has come back (DESIGN 5).
const FLOW: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_sound_broker() {
    let rabbit = Rabbit::start().await.unwrap();
    let url = rabbit.url();
    each_hint_is_taken_once(&rabbit, &url).await;
    a_settlement_keeps_the_digits_of_its_numbers(&url).await;
    a_thousand_puts_at_once_are_all_confirmed(&rabbit, &url).await;
    a_hint_given_back_comes_later_and_not_for_ever(&rabbit, &url).await;
    a_hint_dropped_undone_comes_again(&rabbit, &url).await;
    what_finds_no_slot_goes_to_others(&url).await;
    what_is_no_hint_is_set_aside_once(&rabbit, &url).await;
    a_queue_that_is_gone_is_noticed_and_made_anew(&url).await;
    a_queue_deleted_under_its_consumer_is_made_anew(&url).await;
    only_the_gateway_named_is_told(&rabbit, &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_broker_that_fails() {
    let mut rabbit = Rabbit::start().await.unwrap();
    a_connection_cut_before_the_confirm_is_no_success(&rabbit).await;
    a_frozen_broker_holds_nobody_up(&rabbit).await;
    a_blocked_broker_holds_nobody_up(&rabbit).await;
    a_restart_is_survived(&mut rabbit).await;
    without_the_broker_a_worker_takes_its_own(&mut rabbit).await;
}

fn connect(url: &str) -> RabbitMq {
    open(&Url::parse(url, &["amqp", "amqps"]).unwrap()).unwrap()
}

/// Once it can publish.
async fn ready(url: &str) -> RabbitMq {
    let rabbit = connect(url);
    until("a session", LIMIT, || async { rabbit.hints.reachable() }).await;
    rabbit
}

async fn until<F: Future<Output = bool>>(what: &str, limit: Duration, mut met: impl FnMut() -> F) {
    let began = Instant::now();
    while !met().await {
        assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn hint(kind: HintKind) -> Hint {
    Hint {
        run: RunId::new(0, Uuid::now_v7()),
        rev: 1,
        agent: "asker".into(),
        revision: None,
        kind,
        settlement: None,
    }
}

async fn next(takes: &mut Incoming<Taken>) -> Taken {
    timeout(LIMIT, takes.next()).await.unwrap().unwrap()
}

/// Puts until the broker has taken it.
async fn put_until_taken(rabbit: &RabbitMq, hint: &Hint, limit: Duration) {
    let put = || async { rabbit.hints.put(hint.clone()).await.is_ok() };
    until("a hint is taken", limit, put).await;
}

/// Takes until this hint comes.
async fn until_taken(takes: &mut Incoming<Taken>, hint: &Hint) {
    loop {
        let taken = next(takes).await;
        let found = taken.hint.run == hint.run;
        taken.ack.done();
        if found {
            return;
        }
    }
}

/// The messages in a queue, delivered or not.
async fn messages(rabbit: &Rabbit, queue: &str) -> u64 {
    let listed = rabbit
        .ctl(&["list_queues", "name", "messages"])
        .await
        .unwrap();
    let line = listed.lines().find_map(|line| line.strip_prefix(queue));
    line.unwrap_or("0").trim().parse().unwrap()
}

async fn until_empty(rabbit: &Rabbit) {
    for queue in ["askwell.start.v1", "askwell.resume.v1", "askwell.later.v1"] {
        until(queue, LIMIT, || async {
            messages(rabbit, queue).await == 0
        })
        .await;
    }
}

async fn raw(url: &str) -> (Connection, lapin::Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let confirms = ConfirmSelectOptions::default();
    channel.confirm_select(confirms).await.unwrap();
    (connection, channel)
}

async fn each_hint_is_taken_once(rabbit: &Rabbit, url: &str) {
    let (one, two, gateway) = (connect(url), connect(url), ready(url).await);
    let (mut a, mut b) = (one.hints.take(), two.hints.take());
    let mut put = BTreeSet::new();
    for number in 0..30 {
        let kind = if number % 3 == 0 {
            HintKind::Start
        } else {
            HintKind::Resume
        };
        let hint = hint(kind);
        put.insert(hint.run.clone());
        gateway.hints.put(hint).await.unwrap();
    }
    let mut taken = BTreeSet::new();
    for _ in 0..30 {
        let either = timeout(LIMIT, select(a.next(), b.next())).await.unwrap();
        let (Either::Left((hint, _)) | Either::Right((hint, _))) = either;
        let Taken { hint, ack } = hint.unwrap();
        ack.done();
        assert!(taken.insert(hint.run), "taken twice");
    }
    assert_eq!(taken, put);
    until_empty(rabbit).await;
    drop((gateway, one, two));
    assert!(a.next().await.is_none() && b.next().await.is_none());
}

async fn a_settlement_keeps_the_digits_of_its_numbers(url: &str) {
    let rabbit = ready(url).await;
    let text = r#"{"a":1.10,"b":[1e2,123456789012345678901234567890,null]}"#;
    let data: Value = serde_json::from_str(text).unwrap();
    let settled = Settled {
        ask: "ask_1".into(),
        step: "question 1.1".into(),
        repeat: 1,
        settlement: Settlement {
            outcome: Outcome::Answered,
            by: Some(By {
                sub: "ada".into(),
                device: Some("phone".into()),
            }),
            at: Millis(1_764_500_000_000),
            data: Some(data),
            reason: None,
            cmd: Some("c1".into()),
        },
        digest: "d1".into(),
        reply: json!({"outcome": "answered"}),
    };
    let hint = Hint {
        revision: Some("r1".into()),
        settlement: Some(Box::new(settled)),
        ..hint(HintKind::Resume)
    };
    rabbit.hints.put(hint.clone()).await.unwrap();
    let taken = next(&mut rabbit.hints.take()).await;
    assert_eq!(taken.hint, hint);
    let data = taken.hint.settlement.unwrap().settlement.data.unwrap();
    assert_eq!(data.to_string(), text);
    taken.ack.done();
}

async fn a_thousand_puts_at_once_are_all_confirmed(rabbit: &Rabbit, url: &str) {
    let gateway = ready(url).await;
    let puts = (0..1_000).map(|_| gateway.hints.put(hint(HintKind::Start)));
    for put in join_all(puts).await {
        put.unwrap();
    }
    let arrived = || async { messages(rabbit, "askwell.start.v1").await == 1_000 };
    until("all arrived", LIMIT, arrived).await;
    let mut takes = gateway.hints.take();
    for _ in 0..1_000 {
        next(&mut takes).await.ack.done();
    }
    until_empty(rabbit).await;
}

async fn a_hint_given_back_comes_later_and_not_for_ever(rabbit: &Rabbit, url: &str) {
    let worker = ready(url).await;
    let mut takes = worker.hints.take();
    let hint = hint(HintKind::Resume);
    worker.hints.put(hint.clone()).await.unwrap();
    for tries in 0..=5 {
        let given = Instant::now();
        let taken = next(&mut takes).await;
        assert_eq!((&taken.hint, taken.ack.tries()), (&hint, tries));
        if tries > 0 {
            let waited = given.elapsed();
            assert!(waited > Duration::from_millis(700), "{waited:?}");
            assert!(waited < Duration::from_secs(4), "{waited:?}");
        }
        worker.hints.later(taken).await;
    }
    until_empty(rabbit).await;
}

async fn a_hint_dropped_undone_comes_again(rabbit: &Rabbit, url: &str) {
    let worker = ready(url).await;
    let mut takes = worker.hints.take();
    let hint = hint(HintKind::Start);
    worker.hints.put(hint.clone()).await.unwrap();
    drop(next(&mut takes).await);
    let again = next(&mut takes).await;
    assert_eq!((&again.hint, again.ack.tries()), (&hint, 1));
    again.ack.done();
    until_empty(rabbit).await;
}

/// One worker is busy and looks no more; what was delivered to it goes to the other.
async fn what_finds_no_slot_goes_to_others(url: &str) {
    let (busy, other) = (ready(url).await, ready(url).await);
    let mut slots = busy.hints.take();
    let first = hint(HintKind::Start);
    busy.hints.put(first.clone()).await.unwrap();
    let held = next(&mut slots).await;
    assert_eq!(held.hint, first);
    let mut put = BTreeSet::new();
    for kind in [HintKind::Start, HintKind::Resume].repeat(6) {
        let hint = hint(kind);
        put.insert(hint.run.clone());
        busy.hints.put(hint).await.unwrap();
    }
    let mut takes = other.hints.take();
    let mut taken = BTreeSet::new();
    for _ in 0..put.len() {
        let hint = next(&mut takes).await;
        taken.insert(hint.hint.run.clone());
        hint.ack.done();
    }
    assert_eq!(taken, put);
    // Acknowledged after its channel has consumed no more, and then it consumes again.
    held.ack.done();
    drop(takes);
    drop(other);
    let last = hint(HintKind::Resume);
    busy.hints.put(last.clone()).await.unwrap();
    until_taken(&mut slots, &last).await;
}

async fn what_is_no_hint_is_set_aside_once(rabbit: &Rabbit, url: &str) {
    let worker = ready(url).await;
    let (_connection, channel) = raw(url).await;
    for body in [&b"\x00\x01"[..], br#"{"v":99,"run":"?"}"#] {
        let options = BasicPublishOptions::default();
        let properties = BasicProperties::default();
        let (exchange, key) = ("askwell.jobs".into(), "start".into());
        let sent = channel.basic_publish(exchange, key, options, body, properties);
        assert!(sent.await.unwrap().await.unwrap().is_ack());
    }
    let good = hint(HintKind::Start);
    worker.hints.put(good.clone()).await.unwrap();
    let mut takes = worker.hints.take();
    let taken = next(&mut takes).await;
    assert_eq!(taken.hint, good);
    taken.ack.done();
    let dead = || async { messages(rabbit, "askwell.dead.v1").await == 2 };
    until("both set aside", LIMIT, dead).await;
    until_empty(rabbit).await;
}

async fn delete(url: &str, queue: &str) {
    let (_connection, channel) = raw(url).await;
    let options = QueueDeleteOptions::default();
    channel.queue_delete(queue.into(), options).await.unwrap();
}

async fn a_queue_that_is_gone_is_noticed_and_made_anew(url: &str) {
    let gateway = ready(url).await;
    delete(url, "askwell.start.v1").await;
    // Beside one that finds its queue: neither gets the other's fate.
    let (start, resume) = (hint(HintKind::Start), hint(HintKind::Resume));
    let both = [
        gateway.hints.put(start.clone()),
        gateway.hints.put(resume.clone()),
    ];
    let [lost, taken]: [_; 2] = join_all(both).await.try_into().unwrap();
    assert!(lost.unwrap_err().to_string().contains("queue is not there"));
    taken.unwrap();
    put_until_taken(&gateway, &start, FLOW).await;
    let mut takes = gateway.hints.take();
    let first = next(&mut takes).await;
    let second = next(&mut takes).await;
    assert_eq!([&first.hint, &second.hint], [&resume, &start]);
    first.ack.done();
    second.ack.done();
}

async fn a_queue_deleted_under_its_consumer_is_made_anew(url: &str) {
    let worker = ready(url).await;
    let mut takes = worker.hints.take();
    let before = hint(HintKind::Resume);
    worker.hints.put(before.clone()).await.unwrap();
    until_taken(&mut takes, &before).await;
    delete(url, "askwell.resume.v1").await;
    let after = hint(HintKind::Resume);
    let taking = tokio::spawn({
        let after = after.clone();
        async move { until_taken(&mut takes, &after).await }
    });
    put_until_taken(&worker, &after, FLOW).await;
    timeout(FLOW, taking).await.unwrap().unwrap();
}

fn news(seq: u64) -> Arc<News> {
    let frame = json!({"seq": seq, "type": "ask.opened"}).to_string();
    Arc::new(News {
        owner: Owner::Person("ada".into()),
        run: RunId::new(0, Uuid::nil()),
        agent: "asker".into(),
        keys: vec!["ask.opened.asker".into(), "run.status.asker".into()],
        frames: vec![(seq, Arc::from(frame))],
    })
}

fn delta(text: &str) -> Arc<Delta> {
    Arc::new(Delta {
        owner: Owner::Person("ada".into()),
        run: RunId::new(0, Uuid::nil()),
        turn: 1,
        attempt: 5,
        offset: 0,
        text: text.into(),
    })
}

async fn hears(feed: &mut Incoming<Heard>) -> Heard {
    timeout(LIMIT, feed.next()).await.unwrap().unwrap()
}

/// The seq of the news that is heard next.
async fn hears_news(feed: &mut Incoming<Heard>) -> u64 {
    loop {
        match hears(feed).await {
            Heard::News(news) => return news.frames[0].0,
            Heard::Missed => {}
            Heard::Delta(delta) => panic!("{delta:?}"),
        }
    }
}

async fn only_the_gateway_named_is_told(rabbit: &Rabbit, url: &str) {
    let (one, two, worker) = (connect(url), connect(url), ready(url).await);
    let (mut a, mut b) = (one.feed.subscribe(), two.feed.subscribe());
    for (feed, gateway) in [(&mut a, &one), (&mut b, &two)] {
        assert_eq!(hears(feed).await, Heard::Missed, "each session begins so");
        assert!(gateway.feed.listening());
    }
    let queues = || async {
        let listed = rabbit.ctl(&["list_queues", "name"]).await.unwrap();
        listed.matches("askwell.gw.").count()
    };
    assert_eq!(queues().await, 2);

    // Some other consumer, by kind of frame.
    let (_connection, channel) = raw(url).await;
    let options = QueueDeclareOptions {
        exclusive: true,
        ..QueueDeclareOptions::default()
    };
    let audit = "audit";
    let made = channel.queue_declare(audit.into(), options, FieldTable::default());
    made.await.unwrap();
    for key in ["ask.*.*", "run.#"] {
        let options = QueueBindOptions::default();
        let exchange = "askwell.events".into();
        let bound = channel.queue_bind(
            audit.into(),
            exchange,
            key.into(),
            options,
            FieldTable::default(),
        );
        bound.await.unwrap();
    }
    let options = BasicConsumeOptions {
        no_ack: true,
        ..BasicConsumeOptions::default()
    };
    let audits = channel.basic_consume(audit.into(), "".into(), options, FieldTable::default());
    let mut audits = audits.await.unwrap();

    let to = |gateway: &RabbitMq| vec![gateway.feed.name().to_owned()];
    assert_ne!(to(&one), to(&two));
    worker.feed.stream(delta("To b"), &to(&two));
    worker.feed.publish(news(1), &to(&one)).await;
    worker.feed.publish(news(2), &to(&two)).await;
    let both = [to(&one), to(&two)].concat();
    worker.feed.publish(news(3), &both).await;
    worker.feed.stream(delta("Lost"), &[]);
    worker.feed.publish(news(4), &[]).await;
    worker.feed.publish(news(5), &both).await;
    for seq in [1, 3, 5] {
        assert_eq!(hears_news(&mut a).await, seq);
    }
    assert_eq!(hears(&mut b).await, Heard::Delta(delta("To b")));
    for seq in [2, 3, 5] {
        assert_eq!(hears_news(&mut b).await, seq);
    }
    // Others see each commit once, who was told of it not at all, and no streamed text.
    for seq in 1..=5 {
        let delivery = timeout(LIMIT, audits.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let body: Value = serde_json::from_slice(&delivery.data).unwrap();
        assert_eq!(body["frames"][0]["seq"], seq);
        assert_eq!((&body["v"], &body["agent"]), (&json!(1), &json!("asker")));
        let headers = delivery.properties.headers().clone().unwrap();
        assert!(headers.contains_key("CC") && !headers.contains_key("BCC"));
    }
    drop((a, b, one, two));
    until("their queues are gone", LIMIT, || async {
        queues().await == 0
    })
    .await;
}

/// Never read as success, and never waited for without end.
async fn refused_in_time(rabbit: &RabbitMq, hint: &Hint) -> String {
    let put = timeout(BOUND, rabbit.hints.put(hint.clone())).await;
    put.unwrap().unwrap_err().to_string()
}

async fn a_connection_cut_before_the_confirm_is_no_success(rabbit: &Rabbit) {
    let proxy = Proxy::start(rabbit.port()).await.unwrap();
    let url = format!("amqp://guest:guest@127.0.0.1:{}/%2f", proxy.port());
    let gateway = Arc::new(ready(&url).await);
    gateway.hints.put(hint(HintKind::Start)).await.unwrap();
    proxy.swallow(Swallow::ToClient);
    let swallowed = proxy.counts().swallowed;
    let putting = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.hints.put(hint(HintKind::Start)).await }
    });
    // The confirm itself is lost: the broker has the hint.
    let lost = proxy.until(LIMIT, |counts| counts.swallowed > swallowed);
    lost.await.unwrap();
    proxy.cut().await.unwrap();
    proxy.swallow(Swallow::Nothing);
    let fault = timeout(BOUND, putting).await.unwrap().unwrap().unwrap_err();
    assert!(fault.to_string().contains("ended before"), "{fault}");
    let after = hint(HintKind::Start);
    put_until_taken(&gateway, &after, FLOW).await;
    until_taken(&mut gateway.hints.take(), &after).await;
}

async fn a_frozen_broker_holds_nobody_up(rabbit: &Rabbit) {
    let worker = ready(&rabbit.url()).await;
    let mut takes = worker.hints.take();
    let before = hint(HintKind::Start);
    worker.hints.put(before.clone()).await.unwrap();
    until_taken(&mut takes, &before).await;
    rabbit.process().freeze().unwrap();
    let lost = hint(HintKind::Start);
    let puts = (0..200).map(|_| refused_in_time(&worker, &lost));
    join_all(puts).await;
    // The session ends by itself; from then on nobody waits at all.
    until("the session ends", LIMIT, || async {
        !worker.hints.reachable()
    })
    .await;
    let began = Instant::now();
    let fault = refused_in_time(&worker, &lost).await;
    assert!(fault.contains("no session"), "{fault}");
    assert!(began.elapsed() < Duration::from_millis(500));
    rabbit.process().thaw().unwrap();
    let after = hint(HintKind::Resume);
    // One try of a connection may still be under way.
    put_until_taken(&worker, &after, FLOW + Duration::from_secs(5)).await;
    until_taken(&mut takes, &after).await;
}

async fn a_blocked_broker_holds_nobody_up(rabbit: &Rabbit) {
    let worker = ready(&rabbit.url()).await;
    let mut takes = worker.hints.take();
    let before = hint(HintKind::Start);
    worker.hints.put(before.clone()).await.unwrap();
    until_taken(&mut takes, &before).await;
    rabbit.alarm(true).await.unwrap();
    let lost = hint(HintKind::Start);
    refused_in_time(&worker, &lost).await;
    until("it is known", LIMIT, || async { !worker.hints.reachable() }).await;
    let began = Instant::now();
    refused_in_time(&worker, &lost).await;
    worker.feed.publish(news(1), &["gone".to_owned()]).await;
    assert!(began.elapsed() < Duration::from_millis(500));
    rabbit.alarm(false).await.unwrap();
    let after = hint(HintKind::Resume);
    put_until_taken(&worker, &after, FLOW).await;
    until_taken(&mut takes, &after).await;
}

async fn a_restart_is_survived(rabbit: &mut Rabbit) {
    let (worker, gateway) = (ready(&rabbit.url()).await, ready(&rabbit.url()).await);
    let mut takes = worker.hints.take();
    let mut feed = gateway.feed.subscribe();
    assert_eq!(hears(&mut feed).await, Heard::Missed);
    let kept = hint(HintKind::Start);
    gateway.hints.put(kept.clone()).await.unwrap();
    let taken = next(&mut takes).await;
    rabbit.kill().await.unwrap();
    until("it is known", LIMIT, || async { !gateway.feed.listening() }).await;
    refused_in_time(&gateway, &kept).await;
    rabbit.restart().await.unwrap();
    let back = Instant::now();
    let after = hint(HintKind::Resume);
    put_until_taken(&gateway, &after, FLOW).await;
    until_taken(&mut takes, &after).await;
    assert!(back.elapsed() < FLOW, "{:?}", back.elapsed());
    // What was not acknowledged is delivered again; the old session's right to it is nothing now.
    taken.ack.done();
    until_taken(&mut takes, &kept).await;
    assert_eq!(hears(&mut feed).await, Heard::Missed);
    worker
        .feed
        .publish(news(9), &[gateway.feed.name().to_owned()])
        .await;
    assert_eq!(hears_news(&mut feed).await, 9);
}

async fn without_the_broker_a_worker_takes_its_own(rabbit: &mut Rabbit) {
    let (worker, gateway) = (ready(&rabbit.url()).await, ready(&rabbit.url()).await);
    let mut takes = worker.hints.take();
    let before = hint(HintKind::Start);
    worker.hints.put(before.clone()).await.unwrap();
    until_taken(&mut takes, &before).await;
    rabbit.kill().await.unwrap();
    let gone = Instant::now();
    until("it is known", LIMIT, || async { !worker.hints.reachable() }).await;
    let own = hint(HintKind::Start);
    put_until_taken(&worker, &own, LIMIT).await;
    assert!(gone.elapsed() > Duration::from_secs(9), "too soon");
    assert!(worker.hints.reachable() && !gateway.hints.reachable());
    until_taken(&mut takes, &own).await;
    refused_in_time(&gateway, &own).await;
    rabbit.restart().await.unwrap();
    let after = hint(HintKind::Resume);
    put_until_taken(&gateway, &after, FLOW).await;
    until_taken(&mut takes, &after).await;
}
