//! Sends the changes of one switch's tables in batches, each with one barrier, and takes what the switch confirms.
//!
//! A switch has at most [`MOST_UNANSWERED`] batches that it has not confirmed. What is asked for meanwhile waits and
//! makes up one batch: a thousand intents cost a switch a few barriers, not a thousand. A switch that has confirmed
//! everything is sent a change at once. Entries of applications do not wait for these batches, and what was asked for
//! before them goes along: the controller sends packets through the tables that rely on them. Only the number of
//! entries that a control session holds ([`MOST_ON_WAY`]) is a limit for them, too.
use super::RouteId;
use super::entry::{EntryContent, EntryKey, EntryWork};
use super::entry_table::{EntryHandle, Present};
use super::groups::{self, GroupContent};
use super::route::Hop;
use super::switch::{COOKIE, SERIAL_BITS, SwitchTables};
use std::sync::Arc;
use weir_openflow::model::{Body, FlowCommand, FlowFlags, FlowMod, GroupId, Instruction, TableId};

/// Most batches that a switch has not confirmed, before changes of routes wait.
pub(super) const MOST_UNANSWERED: usize = 2;
/// Most entries that a switch has not confirmed. A control session holds 1 MiB: 256 bytes for each of them.
pub(super) const MOST_ON_WAY: usize = 4096;
/// Most entries of a batch of routes.
const MOST_ENTRIES: usize = MOST_ON_WAY / MOST_UNANSWERED;

/// A batch of messages that was sent.
#[derive(Debug)]
pub(super) struct SentBatch {
    /// Routes that it is about.
    routes: Vec<RouteId>,
    /// Entries that it deletes.
    leaving: Vec<EntryHandle>,
    /// Number of entries that it is about.
    n_entries: usize,
    /// Number of entries that had left the queue when it was sent.
    end: u64,
}

impl SwitchTables {
    /// Returns messages that bring the switch to what is desired, and a barrier. Nothing if there is no difference, or
    /// if the switch has to confirm earlier ones first.
    pub(super) fn flush(&mut self) -> Vec<Body> {
        let must_wait = self.batches.len() >= MOST_UNANSWERED && !self.is_urgent;
        if !self.is_ready() || must_wait {
            return Vec::new();
        }
        let on_way: usize = self.batches.iter().map(|batch| batch.n_entries).sum();
        let room = MOST_ON_WAY.saturating_sub(on_way);
        let most = if self.is_urgent { room } else { room.min(MOST_ENTRIES) };
        let mut messages = Vec::new();
        while messages.is_empty() && most > 0 && (!self.queue.is_empty() || self.groups.has_unused()) {
            messages = self.take_batch(most);
        }
        self.is_urgent &= !self.queue.is_empty();
        messages
    }

    /// Returns the messages of the first entries of the queue; none if the switch has them as they are desired.
    fn take_batch(&mut self, most: usize) -> Vec<Body> {
        let batch = self.sent + 1;
        let (mut routes, mut leaving, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        let changed: Vec<_> = self.queue.drain(..self.queue.len().min(most)).collect();
        let n_entries = changed.len();
        // Deletions first: they make room.
        let is_desired = |handle: &EntryHandle| self.entries.get(*handle).is_some_and(|entry| entry.desired.is_some());
        let (wanted, unwanted): (Vec<_>, Vec<_>) = changed.into_iter().partition(is_desired);
        for handle in unwanted {
            self.delete(handle, batch, &mut routes, &mut leaving, &mut messages);
        }
        for handle in wanted {
            self.add(handle, batch, &mut routes, &mut messages);
        }
        self.groups.delete_unused(&mut messages);
        let end = self.queued - self.queue.len() as u64;
        if messages.is_empty() && routes.is_empty() {
            self.note_unsent(leaving, end);
            return messages;
        }
        messages.push(Body::BarrierRequest);
        routes.sort_unstable();
        routes.dedup();
        self.batches.push_back(SentBatch { routes, leaving, n_entries, end });
        self.sent = batch;
        messages
    }

    /// Notes changes for which nothing had to be sent: they are confirmed with what was sent last.
    fn note_unsent(&mut self, leaving: Vec<EntryHandle>, end: u64) {
        let sent = self.sent;
        let Some(last) = self.batches.back_mut() else {
            self.done = end;
            return leaving.into_iter().for_each(|handle| self.forget_leaving(handle));
        };
        last.end = end;
        for handle in leaving {
            if let Some(leaving) = self.entries.get_mut(handle).and_then(|entry| entry.leaving.as_mut()) {
                leaving.batch = Some(sent);
            }
            last.leaving.push(handle);
        }
    }

    fn forget_leaving(&mut self, handle: EntryHandle) {
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.leaving = None;
        }
        self.entries.forget_if_idle(handle);
    }

    fn delete(
        &mut self,
        handle: EntryHandle,
        batch: u64,
        routes: &mut Vec<RouteId>,
        gone: &mut Vec<EntryHandle>,
        messages: &mut Vec<Body>,
    ) {
        let Some(entry) = self.entries.get_mut(handle) else { return };
        entry.is_queued = false;
        if let Some(leaving) = &mut entry.leaving {
            leaving.batch = Some(batch);
            routes.extend(leaving.route);
            gone.push(handle);
        }
        if let Some(present) = entry.present.take() {
            self.by_serial.remove(&present.serial);
            if let Some(group) = present.group {
                self.groups.release(group);
            }
            let delete =
                FlowMod { table: TableId(entry.key.table), command: FlowCommand::DeleteStrict, ..bare(&entry.key) };
            messages.push(Body::FlowMod(delete));
        }
        self.entries.forget_if_idle(handle);
    }

    fn add(&mut self, handle: EntryHandle, batch: u64, routes: &mut Vec<RouteId>, messages: &mut Vec<Body>) {
        let Some(entry) = self.entries.get_mut(handle) else { return };
        entry.is_queued = false;
        let Some(desired) = entry.desired.as_ref().filter(|desired| !desired.is_refused) else { return };
        routes.extend(desired.route);
        if entry.is_as_desired() {
            return;
        }
        let content = Arc::clone(&desired.content);
        let (instructions, group) = match &content.work {
            EntryWork::Instructions(instructions) => (instructions.clone(), None),
            EntryWork::Hop(hop) => {
                let group = GroupContent::of(hop).map(|content| self.groups.acquire(content, messages));
                (hop_instructions(hop, group), group)
            }
        };
        let serial = take_serial(&mut self.last_serial, |serial| self.by_serial.contains_key(&serial));
        messages.push(add_message(&entry.key, &content, serial, instructions));
        let present = Present { content: Some(content), group, serial, batch };
        if let Some(former) = entry.present.replace(present) {
            self.by_serial.remove(&former.serial);
            former.group.into_iter().for_each(|group| self.groups.release(group));
        }
        self.by_serial.insert(serial, handle);
    }

    /// Notes that the switch has answered a barrier. Returns the routes that its batch was about.
    pub(super) fn confirm(&mut self) -> Vec<RouteId> {
        let Some(batch) = self.batches.pop_front() else { return Vec::new() };
        self.confirmed += 1;
        self.done = batch.end;
        let confirmed = self.confirmed;
        for handle in batch.leaving {
            // It may be wanted again, or was withdrawn again by a later batch.
            let leaving = self.entries.get(handle).and_then(|entry| entry.leaving.as_ref());
            if leaving.is_some_and(|leaving| leaving.batch.is_some_and(|batch| batch <= confirmed)) {
                self.forget_leaving(handle);
            }
        }
        batch.routes
    }
}

/// Returns a serial number that no entry has.
fn take_serial(last: &mut u64, is_used: impl Fn(u64) -> bool) -> u64 {
    loop {
        *last = (*last + 1) & SERIAL_BITS;
        if !is_used(*last) {
            return *last;
        }
    }
}

pub(super) fn hop_instructions(hop: &Hop, group: Option<GroupId>) -> Vec<Instruction> {
    let actions = match group {
        Some(group) => vec![weir_openflow::model::Action::Group(group)],
        None => hop.outputs.iter().flat_map(groups::actions).collect(),
    };
    if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] }
}

fn bare(key: &EntryKey) -> FlowMod {
    FlowMod { table: TableId(key.table), ..FlowMod::add(key.priority, key.matching.clone(), Vec::new()) }
}

fn add_message(key: &EntryKey, content: &EntryContent, serial: u64, instructions: Vec<Instruction>) -> Body {
    let (idle_timeout, hard_timeout) = (content.idle_timeout, content.hard_timeout);
    let flags = if idle_timeout > 0 || hard_timeout > 0 { FlowFlags::SEND_FLOW_REM } else { FlowFlags::default() };
    Body::FlowMod(FlowMod { cookie: COOKIE | serial, idle_timeout, hard_timeout, flags, instructions, ..bare(key) })
}
