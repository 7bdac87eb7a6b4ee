//! Commits a bundle: its messages change the switch one after the other, and each change is recorded. If a message
//! fails, all changes are undone, the last one first. Effects that cannot be undone (packets that leave, messages to
//! channels) happen after all messages have succeeded.
//!
//! The commit runs in steps between which forwarding continues, but no other controller request is handled. During an
//! atomic bundle packets see the flow entries as they were before, until all messages have succeeded. An atomic
//! bundle that changes more than flow entries is committed in a single step.
use super::packet_out::{check_packet_out, release_kept, send_packet_out};
use super::{AgentRequest, RestOfSweep, released};
use crate::buffers::BufferedPacket;
use crate::bundle::PendingBundle;
use crate::chunked_queue::ChunkedQueue;
use crate::flow_mod as sweep;
use crate::journal::{Journal, RecordedChanges, UndoRecord};
use crate::version_semantics::FlowModSemantics;
use crate::{ChannelId, Datapath, DatapathOutput};
use std::collections::VecDeque;
use weir_openflow::Version;
use weir_openflow::model::bundle::{BundleFlags, BundleId};
use weir_openflow::model::{Body, ErrorType, Message, PacketOut};
use weir_packet::FramePool;
use weir_units::Instant;

/// Number of changes that one step undoes or reveals.
const STEP: usize = 8;
/// Cost of a message, in the unit of a sweep's step.
const MESSAGE: usize = sweep::STEP / 8;

/// A bundle that is being committed.
#[derive(Debug)]
pub(crate) struct BundleCommit {
    pub(crate) channel: ChannelId,
    pub(crate) version: Version,
    pub(crate) id: BundleId,
    pub(crate) flags: BundleFlags,
    /// Transaction id of the commit request.
    pub(crate) xid: u32,
    stage: CommitStage,
    /// True if packets do not see the bundle's changes yet.
    is_held_back: bool,
    has_others: bool,
    messages: ChunkedQueue<Box<Message>>,
    begun: Option<BegunChange>,
    /// The journal's record of this commit, while no step runs.
    noted: RecordedChanges,
    /// Recorded changes after all messages have succeeded, to be dropped.
    changes: ChunkedQueue<UndoRecord>,
    rest: ChunkedQueue<CommitEffect>,
    /// Output of the messages, held back until all have succeeded.
    held: DatapathOutput,
}

/// A message about many entries whose change takes several steps.
#[derive(Debug)]
struct BegunChange {
    message: Box<Message>,
    rest: RestOfChange,
}

/// Remaining part of a message's change of many flow entries.
#[derive(Debug)]
struct RestOfChange {
    sweep: RestOfSweep,
    /// Error of the buffer id that the message names. Only a message that is done can fail by it.
    buffer: Option<ErrorType>,
}

/// Stage of a commit.
#[derive(Debug)]
enum CommitStage {
    Changing,
    TakingBack(Box<BundleFailure>),
    /// Sending; holds the remaining messages to channels.
    Telling(VecDeque<(ChannelId, Message)>),
}

/// Result of a step of a commit.
pub(crate) enum CommitProgress {
    /// More steps are needed.
    More,
    /// All messages have succeeded, and the commit is complete.
    Done,
    /// A message failed; nothing has changed.
    Failed(Box<BundleFailure>),
}

/// A message that failed within a bundle, with its error.
#[derive(Debug)]
pub(crate) struct BundleFailure {
    pub(crate) message: Message,
    pub(crate) error: ErrorType,
}

/// An effect that happens after all messages have succeeded.
#[derive(Debug)]
enum CommitEffect {
    /// A packet-out, with the buffered packet that it names.
    PacketOut(PacketOut, Option<BufferedPacket>),
    /// A buffered packet named by a flow-mod, to be run through the tables.
    Release(BufferedPacket),
}

impl BundleCommit {
    /// Begins to commit a bundle, as the message `xid` of its channel requests.
    pub(crate) fn new(bundle: PendingBundle, version: Version, xid: u32, journal: &Journal) -> BundleCommit {
        BundleCommit {
            channel: bundle.channel,
            version,
            id: bundle.id,
            flags: bundle.flags,
            xid,
            stage: CommitStage::Changing,
            is_held_back: false,
            has_others: bundle.has_others,
            messages: bundle.messages,
            begun: None,
            noted: journal.for_bundle(),
            changes: ChunkedQueue::default(),
            rest: ChunkedQueue::default(),
            held: DatapathOutput::default(),
        }
    }

    /// Returns true if the present stage must run in a single step, because packets must see none or all of its
    /// changes.
    pub(crate) fn is_in_one(&self) -> bool {
        self.is_atomic() && self.has_others && !matches!(self.stage, CommitStage::Telling(_))
    }

    fn is_atomic(&self) -> bool {
        self.flags.contains(BundleFlags::ATOMIC)
    }

    /// Hides changes of flow entries from packets until the bundle is complete, if it is atomic.
    fn hold_back(&mut self, datapath: &mut Datapath) {
        if self.is_atomic() && !self.has_others && !std::mem::replace(&mut self.is_held_back, true) {
            datapath.tables.hold();
        }
    }

    /// Runs the next step.
    pub(crate) fn step(
        &mut self,
        datapath: &mut Datapath,
        now: Instant,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> CommitProgress {
        if matches!(self.stage, CommitStage::Telling(_)) {
            return self.tell(datapath, now, pool, out);
        }
        self.hold_back(datapath);
        datapath.journal.swap(&mut self.noted);
        let step = match self.stage {
            CommitStage::TakingBack(_) => self.take_back(datapath, now, out),
            _ => self.change(datapath, now, pool, out),
        };
        datapath.journal.swap(&mut self.noted);
        step
    }

    fn change(
        &mut self,
        datapath: &mut Datapath,
        now: Instant,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> CommitProgress {
        let mut most = sweep::STEP;
        while most > 0 {
            let (message, changed) = match self.begun.take() {
                Some(BegunChange { message, mut rest }) => {
                    let by = (self.channel, message.xid);
                    match datapath.sweep_on(now, by, &mut rest.sweep, &mut most, &mut self.held) {
                        Ok(false) => {
                            self.begun = Some(BegunChange { message, rest });
                            break;
                        }
                        changed => (message, changed.and_then(|_| rest.buffer.map_or(Ok(()), Err))),
                    }
                }
                None => {
                    let Some(message) = self.messages.pop_front() else {
                        self.succeed(datapath, out);
                        return CommitProgress::More;
                    };
                    most = most.saturating_sub(MESSAGE);
                    datapath.journal.by = Some((datapath.plane.channels.main_of(self.channel), message.xid));
                    let mut request =
                        AgentRequest::new(now, self.channel, self.version, message.xid, pool, &mut self.held);
                    match change(datapath, &message, &mut request, &mut self.rest) {
                        Ok(Some(rest)) => {
                            self.begun = Some(BegunChange { message, rest });
                            continue;
                        }
                        changed => (message, changed.map(drop)),
                    }
                }
            };
            if let Err(error) = changed {
                self.stage = CommitStage::TakingBack(Box::new(BundleFailure { message: *message, error }));
                // Monitors get no notice of changes that are undone.
                datapath.journal.take_changes();
                break;
            }
        }
        datapath.journal.by = None;
        CommitProgress::More
    }

    fn succeed(&mut self, datapath: &mut Datapath, out: &mut DatapathOutput) {
        let mut held = std::mem::take(&mut self.held);
        self.changes = datapath.journal.end();
        datapath.monitors.tell(&mut datapath.journal, &datapath.plane.channels, &mut held);
        let messages = std::mem::take(&mut held.messages);
        out.append(held);
        self.stage = CommitStage::Telling(messages.into());
    }

    fn take_back(&mut self, datapath: &mut Datapath, now: Instant, out: &mut DatapathOutput) -> CommitProgress {
        for _ in 0..STEP {
            if let Some(undo) = datapath.journal.take_last() {
                take_back(datapath, now, undo, out);
            } else if let Some(rest) = self.rest.pop_front() {
                // A packet that a message of the bundle named stays in the buffer.
                if let CommitEffect::PacketOut(_, Some(kept)) | CommitEffect::Release(kept) = rest {
                    datapath.plane.buffers.put_back(kept);
                }
            } else if !datapath.tables.reveal() {
                // The changes were never visible, so revealing the tables now changes nothing for packets.
                break;
            } else if let CommitStage::TakingBack(failure) = std::mem::replace(&mut self.stage, CommitStage::Changing) {
                return CommitProgress::Failed(failure);
            }
        }
        CommitProgress::More
    }

    fn tell(
        &mut self,
        datapath: &mut Datapath,
        now: Instant,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> CommitProgress {
        if !datapath.tables.reveal() {
            return CommitProgress::More;
        }
        for _ in 0..STEP {
            drop(self.changes.pop_back());
            if let CommitStage::Telling(messages) = &mut self.stage
                && let Some(message) = messages.pop_front()
            {
                out.messages.push(message);
            } else if let Some(rest) = self.rest.pop_front() {
                let mut request = AgentRequest::new(now, self.channel, self.version, self.xid, pool, out);
                let (mut live, set) = datapath.effects(&mut request);
                match rest {
                    // The packet-out was checked before, together with its buffered packet.
                    CommitEffect::PacketOut(packet, kept) => send_packet_out(&packet, kept, &mut live),
                    CommitEffect::Release(kept) => release_kept(kept, set, &mut live),
                }
            } else if self.changes.len() == 0 {
                return CommitProgress::Done;
            }
        }
        CommitProgress::More
    }
}

/// Applies the part of a message that can be undone. The other part is appended to `later`. Returns the rest of the
/// work if the message changes many entries.
fn change(
    datapath: &mut Datapath,
    message: &Message,
    request: &mut AgentRequest<'_>,
    later: &mut ChunkedQueue<CommitEffect>,
) -> Result<Option<RestOfChange>, ErrorType> {
    match &message.body {
        Body::FlowMod(flow) => {
            let rest = datapath.change_entries(flow, FlowModSemantics::of(flow, request.version), request)?;
            let buffer = match released(flow).map(|buffer| datapath.plane.take_buffered(request.channel, buffer)) {
                Some(Ok(kept)) => {
                    later.push(CommitEffect::Release(kept));
                    None
                }
                Some(Err(error)) if rest.is_none() => return Err(error),
                Some(Err(error)) => Some(error),
                None => None,
            };
            Ok(rest.map(|sweep| RestOfChange { sweep, buffer }))
        }
        Body::PacketOut(packet) => {
            let kept = match packet.buffer_id {
                Some(buffer) => Some(datapath.plane.take_buffered(request.channel, buffer)?),
                None => None,
            };
            let checked = check_packet_out(&datapath.plane, &datapath.groups, packet, kept.as_ref(), request.version);
            later.push(CommitEffect::PacketOut(packet.clone(), kept));
            checked.map(|()| None)
        }
        body => Ok(datapath.answer(body, request)?.map(|sweep| RestOfChange { sweep, buffer: None })),
    }
}

/// Undoes a change; later changes must have been undone already.
fn take_back(datapath: &mut Datapath, now: Instant, undo: UndoRecord, out: &mut DatapathOutput) {
    match undo {
        UndoRecord::Port(port, config) => {
            datapath.plane.ports.change(port, |desc| desc.config = config);
            datapath.groups.follow(&datapath.plane.ports);
        }
        UndoRecord::Groups(saved) => datapath.groups.restore(*saved, &datapath.plane.ports, &mut datapath.plane.groups),
        UndoRecord::Meters(saved) => datapath.plane.meters.restore(saved),
        UndoRecord::Table(table, settings) => drop(datapath.tables.configure(table, *settings)),
        entry => {
            let lost = datapath.edit_tables().undo(now, entry);
            datapath.plane.channels.tell_removed(lost.into_iter().collect(), out);
        }
    }
}
