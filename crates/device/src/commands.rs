//! Emulates the command queue of a profiled switch: gathers commands in batches, carries them out one after the other,
//! each for the duration that the profile gives it, and answers barriers in order.
use crate::effect::{ExecutedCommand, VisibilityQueue};
use crate::record::{CommandRecord, TableEffectKind};
use crate::server::ServiceTimeSampler;
use crate::tables::CommandCost;
use std::collections::VecDeque;
use std::time::Duration;
use weir_model::switch::batch::CommandBatching;
use weir_model::switch::speedup::CommandBatch;
use weir_units::Instant;

/// Maximum number of commands and barriers in the queue. The caller must hold further ones back.
pub const MAX_COMMANDS: usize = 1 << 16;

/// Effect of a command on the tables as they are when the command is started. Entries are identified by the names
/// (numbers) under which they were added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableEffect {
    /// Adds one entry.
    Add {
        /// Priority of the entry.
        priority: u16,
    },
    /// Modifies or replaces entries.
    Modify {
        /// Names of the entries.
        entries: Vec<u64>,
    },
    /// Deletes the listed entries.
    Delete {
        /// Names of the entries.
        entries: Vec<u64>,
    },
    /// Carries out a bundle.
    Bundle {
        /// Effects of the bundle's messages on the tables as they are before the bundle. Messages that change no
        /// entries are [`TableEffect::Nothing`].
        members: Vec<TableEffect>,
        /// Number of further messages, which take the mean time of `members`.
        more: usize,
    },
    /// Changes nothing: the command will be refused.
    Nothing,
}

impl TableEffect {
    /// Returns the number of table changes this command makes.
    pub(crate) fn writes(&self) -> u32 {
        match self {
            TableEffect::Bundle { members, more } => {
                let changing = members.iter().filter(|member| **member != TableEffect::Nothing).count();
                u32::try_from(changing.saturating_add(*more)).unwrap_or(u32::MAX)
            }
            _ => 1,
        }
    }
}

/// Command that waits in a batch, with its arrival time.
#[derive(Debug)]
struct QueuedCommand<T> {
    item: T,
    came: Instant,
}

#[derive(Debug)]
struct RunningCommand<T> {
    item: T,
    record: CommandRecord,
    member: Option<usize>,
    work: TableEffect,
}

/// Function that returns the effect and cost of a command in a batch, given the commands that were carried out but are
/// not visible to packets yet.
pub(crate) type CostFunction<'a, T> = dyn FnMut(&T, CommandBatch, &VecDeque<ExecutedCommand<T>>) -> CommandStart + 'a;

/// Effect and cost of a command that is being started.
pub(crate) struct CommandStart {
    pub(crate) kind: TableEffectKind,
    /// Number of table changes this command makes.
    pub(crate) writes: u32,
    pub(crate) charge: CommandCost,
    pub(crate) work: TableEffect,
}

#[derive(Debug)]
struct QueuedBarrier<T> {
    item: T,
    came: Instant,
    /// Value of `CommandQueue::done` from which on the barrier is answered: the number of commands that arrived before
    /// it, or 0 if barriers do not wait.
    after: u64,
}

#[derive(Debug)]
pub(crate) struct CommandQueue<T> {
    batching: CommandBatching,
    /// Batch that is being gathered.
    gathering: Vec<QueuedCommand<T>>,
    /// Arrival time of the latest command.
    last: Instant,
    /// Complete batches, oldest first: time at which the batch was complete, its number of commands, and its commands
    /// that were not started yet.
    whole: VecDeque<(Instant, u32, VecDeque<QueuedCommand<T>>)>,
    waiting: usize,
    current: Option<RunningCommand<T>>,
    /// Time at which the previous command was done, so that the next one can start.
    free: Instant,
    came: u64,
    /// Number of commands that count as done for barriers, and the time of the latest one.
    done: u64,
    counted: Instant,
    effect: VisibilityQueue<T>,
    /// Number of commands that were carried out but may still be refused when their changes become visible to packets.
    unsure: u64,
    barriers: VecDeque<QueuedBarrier<T>>,
    /// Due time of the first barrier's reply, once it is known.
    answer: Option<Instant>,
    /// Due time of the latest barrier reply that was determined; later replies are not due before it.
    answered: Instant,
    waits: bool,
    lag: ServiceTimeSampler,
}

/// Event in the command queue, returned by [`CommandQueue::step`].
pub(crate) enum CommandQueueEvent<T> {
    /// A command is done, and its changes are visible to packets.
    Done {
        item: T,
        record: CommandRecord,
        /// If a bundle is refused because all table levels are full: index of the message that found them full.
        member: Option<usize>,
    },
    /// A command is done, but its changes are not visible to packets yet.
    Unseen,
    /// A barrier's reply is due at `due`.
    Answer { item: T, due: Instant },
    /// A command was started at `at`. From then on it occupies the data path.
    Begun {
        at: Instant,
        /// Number of table changes.
        writes: u32,
    },
}

impl<T> CommandQueue<T> {
    pub(crate) fn new(
        batching: CommandBatching,
        waits: bool,
        lag: ServiceTimeSampler,
        effect: VisibilityQueue<T>,
    ) -> CommandQueue<T> {
        CommandQueue {
            batching,
            gathering: Vec::new(),
            last: Instant::ZERO,
            whole: VecDeque::new(),
            waiting: 0,
            current: None,
            free: Instant::ZERO,
            came: 0,
            done: 0,
            counted: Instant::ZERO,
            effect,
            unsure: 0,
            barriers: VecDeque::new(),
            answer: None,
            answered: Instant::ZERO,
            waits,
            lag,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.waiting().0 + self.barriers.len() < MAX_COMMANDS
    }

    /// Returns true if no command or barrier is in the queue.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting() == (0, 0)
    }

    /// Returns the numbers of waiting commands and barriers.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.waiting + usize::from(self.current.is_some()) + self.unseen().len(), self.barriers.len())
    }

    /// Returns the commands that were carried out but whose changes are not visible to packets yet.
    pub(crate) fn unseen(&self) -> &VecDeque<ExecutedCommand<T>> {
        self.effect.waiting()
    }

    /// Sets the time that rounds which begin from now on take in addition to the law of the effect.
    pub(crate) fn lengthen_rounds(&mut self, more: Duration) {
        self.effect.lengthen(more);
    }

    /// Returns true if changes become visible to packets some time after they were carried out.
    pub(crate) fn has_effect(&self) -> bool {
        self.effect.takes_time()
    }

    pub(crate) fn command(&mut self, now: Instant, item: T) {
        self.close(now);
        self.came += 1;
        self.waiting += 1;
        self.last = now;
        self.gathering.push(QueuedCommand { item, came: now });
        if self.gathering.len() as u64 >= u64::from(self.batching.most) {
            self.end_batch(now);
        }
    }

    pub(crate) fn barrier(&mut self, now: Instant, item: T) {
        let after = if self.waits { self.came } else { 0 };
        self.barriers.push_back(QueuedBarrier { item, came: now, after });
        self.look_at_barrier();
    }

    /// Returns the time at which the gathered batch is complete without further commands.
    fn closes(&self) -> Instant {
        if self.gathering.is_empty() {
            Instant::FAR
        } else {
            self.last + Duration::from_secs_f64(self.batching.timeout_s)
        }
    }

    /// Ends the gathered batch if its time-out has passed. A gap equal to the time-out ends a batch, as in
    /// [`CommandBatching::batches`].
    fn close(&mut self, now: Instant) {
        let closes = self.closes();
        if closes <= now {
            self.end_batch(closes);
        }
    }

    fn end_batch(&mut self, at: Instant) {
        let together = u32::try_from(self.gathering.len()).unwrap_or(u32::MAX);
        self.whole.push_back((at, together, std::mem::take(&mut self.gathering).into()));
    }

    /// Returns the time of the next step. `ahead` converts the due time of a message into the time at which the
    /// message is released.
    pub(crate) fn due(&self, ahead: &dyn Fn(Instant) -> Instant) -> Instant {
        let next = match (&self.current, self.whole.front()) {
            (Some(current), _) => current.record.ended,
            (None, Some((whole, ..))) => (*whole).max(self.free),
            (None, None) => Instant::FAR,
        };
        next.min(self.closes()).min(self.answers().map_or(Instant::FAR, ahead)).min(self.effect.due())
    }

    /// Returns the time of the first barrier's reply, unless another step comes before it.
    fn answers(&self) -> Option<Instant> {
        let ends = self.current.as_ref().map_or(Instant::FAR, |current| current.record.ended);
        self.answer.filter(|answer| *answer <= ends && *answer < self.effect.due())
    }

    /// Performs the next step that is due by `now`, if there is one. `ahead` is the function passed to
    /// [`CommandQueue::due`]. `charge` is called when a command is started, and returns its effect and cost. All
    /// earlier commands have been carried out then; those whose changes are not visible to packets yet are passed to
    /// `charge`.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        ahead: &dyn Fn(Instant) -> Instant,
        charge: &mut CostFunction<'_, T>,
    ) -> Option<CommandQueueEvent<T>> {
        self.close(now);
        let ends = self.current.as_ref().map_or(Instant::FAR, |current| current.record.ended);
        if self.effect.due() <= self.answer.unwrap_or(Instant::FAR).min(ends)
            && let Some(ExecutedCommand { item, record, holds, .. }) = self.effect.take(now)
        {
            if holds > 0 {
                (self.unsure, self.done) = (self.unsure - 1, self.done + holds);
                self.counted = self.counted.max(record.shown);
                self.look_at_barrier();
            }
            return Some(CommandQueueEvent::Done { item, record, member: None });
        }
        if self.answers().is_some_and(|answer| ahead(answer) <= now) {
            let due = self.answer.take()?;
            let barrier = self.barriers.pop_front()?;
            self.look_at_barrier();
            return Some(CommandQueueEvent::Answer { item: barrier.item, due });
        }
        if let Some(current) = self.current.take_if(|current| current.record.ended <= now) {
            return Some(self.end(current));
        }
        if self.current.is_some() {
            return None;
        }
        let (whole, together, batch) = self.whole.front_mut()?;
        let began = (*whole).max(self.free);
        if began > now {
            return None;
        }
        let together = *together;
        let first = batch.pop_front();
        if batch.is_empty() {
            self.whole.pop_front();
        }
        let QueuedCommand { item, came } = first?;
        self.waiting -= 1;
        let batch = CommandBatch { commands: together, most: self.batching.most };
        let CommandStart { kind, writes, charge, work } = charge(&item, batch, self.effect.waiting());
        let CommandCost { duration_s, moved, full, member } = charge;
        let ended = began + Duration::try_from_secs_f64(duration_s).unwrap_or(Duration::ZERO);
        let record = CommandRecord { kind, came, began, ended, shown: ended, batch: together, moved, full };
        self.current = Some(RunningCommand { item, record, member, work });
        Some(CommandQueueEvent::Begun { at: began, writes })
    }

    /// Ends a command. A refused command changes nothing; others are passed on to become visible to packets, in
    /// order.
    fn end(&mut self, current: RunningCommand<T>) -> CommandQueueEvent<T> {
        let RunningCommand { item, record, member, work } = current;
        self.free = record.ended;
        let is_refused = record.full || member.is_some();
        let is_alone = record.kind == TableEffectKind::Nothing && self.unseen().is_empty();
        let is_unseen = self.effect.takes_time() && !is_refused && !is_alone;
        let is_unsure = is_unseen && record.kind == TableEffectKind::Nothing;
        let is_held = is_unsure || (self.unsure > 0 && self.effect.hold());
        if !is_held {
            self.done += 1;
            self.counted = self.counted.max(record.ended);
        }
        self.unsure += u64::from(is_unsure);
        let step = if is_unseen {
            self.effect.done(ExecutedCommand { item, record, work, holds: u64::from(is_unsure) });
            CommandQueueEvent::Unseen
        } else {
            CommandQueueEvent::Done { item, record, member }
        };
        self.effect.look(self.free, self.batch_is_over(self.free), self.batching.most == 1);
        self.look_at_barrier();
        step
    }

    /// Returns true if no further command starts at once: at the end of a batch, or without batching when the queue
    /// is empty.
    fn batch_is_over(&self, now: Instant) -> bool {
        let next = self.whole.front();
        let is_within =
            |(_, together, left): &(Instant, u32, VecDeque<QueuedCommand<T>>)| left.len() < *together as usize;
        next.is_none_or(|next| next.0 > now || (self.batching.most > 1 && !is_within(next)))
    }

    /// Computes the time of the first barrier's reply if the commands before it are done.
    fn look_at_barrier(&mut self) {
        let Some(barrier) = self.barriers.front() else { return };
        if self.answer.is_none() && barrier.after <= self.done {
            let from = if barrier.after == 0 { barrier.came } else { barrier.came.max(self.counted) };
            let lag = self.lag.draw_ns(0);
            let answer = from + Duration::try_from_secs_f64(lag / 1e9).unwrap_or(Duration::ZERO);
            // Barriers do not overtake each other.
            self.answered = self.answered.max(answer);
            self.answer = Some(self.answered);
        }
    }
}
