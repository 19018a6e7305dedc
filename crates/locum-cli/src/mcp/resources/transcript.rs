//! A task's log as text, entry by entry: what it was asked, what it said, what its tools answered, how it ended.

use std::fmt::Write as _;

use locum::Desk;
use locum::desk::ShownTask;
use locum::neutral::neutralise;
use locum::protocol::Refusal;
use locum::task::{Record, TaskEvent};

use super::address::Spot;
use super::page::{BYTES_MAX, Page, head_within};
use crate::commands::logs::Teller;

/// Entries that are read at once: more than most pages hold.
const ENTRIES: usize = 32;

/// A page of a task's log. An entry that does not fit into one goes on in the next.
pub(super) async fn read(desk: &Desk, task: &ShownTask, spot: &Spot) -> Result<Page, Refusal> {
    let records = desk.records_of(&task.uid, spot.after, ENTRIES).await?;
    let (mut page, mut left, mut offset) = (String::new(), BYTES_MAX, spot.offset);
    let mut after = spot.after;
    for record in &records {
        let entry = entry(record);
        let start = entry.char_indices().nth(offset).map_or(entry.len(), |(start, _)| start);
        let rest = &entry[start..];
        let (part, count) = head_within(rest, left);
        let is_whole = part.len() == rest.len();
        if !is_whole && !page.is_empty() {
            // It begins the next page.
            return Ok(Page { text: page, next: Some(Spot { after, offset: 0, ..spot.clone() }) });
        }
        page.push_str(part);
        if !is_whole {
            return Ok(Page { text: page, next: Some(Spot { after, offset: offset + count, ..spot.clone() }) });
        }
        left = left.saturating_sub(written(part));
        (after, offset) = (record.seq, 0);
    }
    let next = (after < task.seq && !records.is_empty()).then(|| Spot { after, offset: 0, ..spot.clone() });
    Ok(Page { text: page, next })
}

/// Bytes that JSON takes for a text.
fn written(text: &str) -> usize {
    serde_json::to_string(text).map_or(text.len(), |json| json.len().saturating_sub(2))
}

fn entry(record: &Record) -> String {
    let mut entry = format!("#{} {} ", record.seq, record.at);
    let said = match &record.event {
        TaskEvent::Accepted { plan, .. } => format!("asked\n{}", plan.assignment.task),
        TaskEvent::Replied { turn, reply } => {
            let mut said = format!("turn {turn}: said\n{}", reply.text);
            for call in &reply.tool_calls {
                // Writing to a string does not fail.
                write!(said, "\n[calls {} {}]", call.name, call.input).ok();
            }
            said
        }
        TaskEvent::ToolEnded { turn, output, .. } => format!("turn {turn}: a tool answered\n{}", output.text),
        event => Teller::default().tell(event),
    };
    // What agents and their tools wrote is data to whoever reads this.
    entry.push_str(&neutralise(&said));
    entry.push_str("\n\n");
    entry
}
