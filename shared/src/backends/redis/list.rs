//! Lists. A person's lie in one partition; a system's and everybody's are merged from all.

use deadpool_redis::redis::Value;
use futures_util::future::try_join_all;

use super::keys::Partition;
use super::record::Parts;
use super::script::{Call, LIST};
use super::{Broken, Redis};
use crate::id::Owner;
use crate::ports::{At, Page, Whose};
use crate::time::Millis;

/// Members of an index that one call of the script looks at, so that no other waits long for it.
const LOOKS: usize = 2_000;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Runs,
    Asks,
}

/// A place in a list: what comes after it is older, or of the same time with a lesser id.
type Place = (Millis, String);

/// Where a partition goes on.
enum Next {
    /// With its newest item.
    First,
    /// After this one.
    After(Place),
    /// There is no more.
    End,
}

/// How far one partition is read.
struct Part {
    partition: Partition,
    items: Vec<(Place, Value)>,
    next: Next,
    now: Millis,
}

/// A page, as the script gives its items.
pub(super) async fn page(store: &Redis, kind: Kind, page: &Page) -> Result<At<Vec<Value>>, Broken> {
    let mut parts: Vec<Part> = partitions(&page.whose)
        .into_iter()
        .map(|partition| Part {
            partition,
            items: Vec::new(),
            next: page.after.clone().map_or(Next::First, Next::After),
            now: Millis(0),
        })
        .collect();
    // More than one partition's share, since items are never spread evenly.
    let portion = if parts.len() == 1 {
        page.limit
    } else {
        page.limit.div_ceil(parts.len()) * 2 + 2
    };
    loop {
        let cut = cut(&parts, page.limit);
        let pending = parts.iter_mut().filter(|part| match &part.next {
            Next::End => false,
            Next::First => true,
            // Else what it has left is older than what the page holds already.
            Next::After(next) => cut.as_ref().is_none_or(|cut| next > cut),
        });
        let reads = pending.map(|part| read(store, kind, page, portion.max(1), part));
        let reads: Vec<_> = reads.collect();
        if page.limit == 0 || reads.is_empty() {
            break;
        }
        try_join_all(reads).await?;
    }
    let now = parts.iter().map(|part| part.now).max().unwrap_or_default();
    let mut items: Vec<(Place, Value)> = parts.into_iter().flat_map(|part| part.items).collect();
    items.sort_by(|(one, _), (two, _)| two.cmp(one));
    items.truncate(page.limit);
    let value = items.into_iter().map(|(_, item)| item).collect();
    Ok(At { now, value })
}

fn partitions(whose: &Whose) -> Vec<Partition> {
    match whose {
        Whose::Of(starter) if !starter.system => {
            vec![Partition::of_owner(&Owner::Person(starter.sub.clone()))]
        }
        _ => Partition::all().collect(),
    }
}

/// The oldest item of a full page.
fn cut(parts: &[Part], limit: usize) -> Option<Place> {
    let mut places: Vec<&Place> = parts
        .iter()
        .flat_map(|part| part.items.iter().map(|(place, _)| place))
        .collect();
    places.sort();
    let last = places.len().checked_sub(limit)?;
    places.get(last).map(|place| (*place).clone())
}

async fn read(
    store: &Redis,
    kind: Kind,
    page: &Page,
    portion: usize,
    part: &mut Part,
) -> Result<(), Broken> {
    let partition = &part.partition;
    let index = match (&page.whose, kind) {
        (Whose::Of(starter), Kind::Runs) => partition.starter("runs", starter),
        (Whose::Of(starter), Kind::Asks) => partition.starter("open", starter),
        (Whose::All, Kind::Runs) => partition.index("runs"),
        (Whose::All, Kind::Asks) => match &page.agent {
            Some(agent) => partition.open_of_agent(agent),
            None => partition.index("open"),
        },
    };
    let mut call: Call = store.script(&LIST, partition).with(index);
    let (time, id) = match &part.next {
        Next::After((time, id)) => (time.0, id.as_str()),
        _ => (0, ""),
    };
    call.arg(match kind {
        Kind::Runs => "runs",
        Kind::Asks => "asks",
    });
    call.arg(time).arg(id).arg(portion).arg(LOOKS);
    call.arg(page.agent.as_deref().unwrap_or_default());
    if kind == Kind::Runs {
        call.arg(page.thread.as_deref().unwrap_or_default());
        for status in &page.statuses {
            call.arg(status.name());
        }
    } else {
        call.arg("");
    }
    let mut reply = Parts::of(store.lines.call(&call).await?.value)?;
    part.now = reply.now()?;
    for item in reply.list()? {
        let mut item = Parts::of(item)?;
        let place = (item.number().map(Millis)?, item.text()?);
        part.items.push((place, item.value()));
    }
    part.next = match reply.maybe()? {
        None => Next::End,
        Some(time) => {
            let time = time
                .parse()
                .map_err(|_| Broken::Damaged("an index holds no times".into()))?;
            Next::After((Millis(time), reply.text()?))
        }
    };
    Ok(())
}
