//! The queue of commands: gathered in batches, carried out one after the other, each as long as it takes; and barriers between them.
use crate::record::{Record, WorkKind};
use crate::server::Drawn;
use crate::tables::Charge;
use std::collections::VecDeque;
use std::time::Duration;
use weir_model::switch::batch::Batching;
use weir_model::switch::speedup::Batch;
use weir_units::Instant;

/// Commands and barriers that wait at most; who has more to say has to wait.
pub const MAX_COMMANDS: usize = 1 << 16;

/// What a command is about, as the tables are when its turn comes. Entries have the names that they were added by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// It adds an entry.
    Add {
        /// Of this priority.
        priority: u16,
    },
    /// It modifies these, or puts others in their place.
    Modify {
        /// The entries.
        entries: Vec<u64>,
    },
    /// It deletes these.
    Delete {
        /// The entries.
        entries: Vec<u64>,
    },
    /// It carries out a bundle.
    Bundle {
        /// What its messages do, as the tables are before it; those that change no entries do [`Work::Nothing`].
        members: Vec<Work>,
        /// Messages behind those, which take as long as these do in the mean.
        more: usize,
    },
    /// It will be refused.
    Nothing,
}

impl Work {
    /// Changes of the tables that it is.
    pub(crate) fn writes(&self) -> u32 {
        match self {
            Work::Bundle { members, more } => {
                let changing = members.iter().filter(|member| **member != Work::Nothing).count();
                u32::try_from(changing.saturating_add(*more)).unwrap_or(u32::MAX)
            }
            _ => 1,
        }
    }
}

/// What came, in its order.
#[derive(Debug)]
struct Waiting<T> {
    item: T,
    came: Instant,
}

#[derive(Debug)]
struct Current<T> {
    item: T,
    record: Record,
    member: Option<usize>,
}

#[derive(Debug)]
struct Barrier<T> {
    item: T,
    came: Instant,
    /// How many commands have to be done before it.
    after: u64,
}

#[derive(Debug)]
pub(crate) struct Commands<T> {
    batching: Batching,
    /// The batch that is being gathered.
    gathering: Vec<Waiting<T>>,
    /// When the last of it came.
    last: Instant,
    /// Batches that are whole: when they became that, and how many are left of how many.
    whole: VecDeque<(Instant, u32, VecDeque<Waiting<T>>)>,
    waiting: usize,
    current: Option<Current<T>>,
    /// When the last one was done.
    free: Instant,
    came: u64,
    done: u64,
    barriers: VecDeque<Barrier<T>>,
    /// When the first barrier is answered, once that is known.
    answer: Option<Instant>,
    /// When the one before it was.
    answered: Instant,
    waits: bool,
    lag: Drawn,
}

/// What the queue of commands has for who looks.
pub(crate) enum Step<T> {
    /// A command is done.
    Done {
        item: T,
        record: Record,
        /// Of a bundle that finds all levels full: the message that does.
        member: Option<usize>,
    },
    /// A barrier is to be answered.
    Answer { item: T, due: Instant },
    /// A command was begun: it holds the data path from then on.
    Begun {
        at: Instant,
        /// For so many changes of the tables.
        writes: u32,
    },
}

impl<T> Commands<T> {
    pub(crate) fn new(batching: Batching, waits: bool, lag: Drawn) -> Commands<T> {
        Commands {
            batching,
            gathering: Vec::new(),
            last: Instant::ZERO,
            whole: VecDeque::new(),
            waiting: 0,
            current: None,
            free: Instant::ZERO,
            came: 0,
            done: 0,
            barriers: VecDeque::new(),
            answer: None,
            answered: Instant::ZERO,
            waits,
            lag,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.waiting + self.barriers.len() < MAX_COMMANDS
    }

    /// Whether any command or barrier is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.current.is_none() && self.barriers.is_empty()
    }

    /// Commands and barriers that wait.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.waiting + usize::from(self.current.is_some()), self.barriers.len())
    }

    pub(crate) fn command(&mut self, now: Instant, item: T) {
        self.close(now);
        self.came += 1;
        self.waiting += 1;
        self.last = now;
        self.gathering.push(Waiting { item, came: now });
        if self.gathering.len() as u64 >= u64::from(self.batching.most) {
            self.end_batch(now);
        }
    }

    pub(crate) fn barrier(&mut self, now: Instant, item: T) {
        let after = if self.waits { self.came } else { 0 };
        self.barriers.push_back(Barrier { item, came: now, after });
        self.look_at_barrier();
    }

    /// When the batch that is gathered is whole without more commands.
    fn closes(&self) -> Instant {
        if self.gathering.is_empty() {
            Instant::FAR
        } else {
            self.last + Duration::from_secs_f64(self.batching.timeout_s)
        }
    }

    /// A gap of the time-out itself ends a batch, as for [`Batching::batches`].
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

    /// When there is something to do.
    pub(crate) fn due(&self) -> Instant {
        let next = match (&self.current, self.whole.front()) {
            (Some(current), _) => current.record.ended,
            (None, Some((whole, ..))) => (*whole).max(self.free),
            (None, None) => Instant::FAR,
        };
        next.min(self.closes()).min(self.answer.unwrap_or(Instant::FAR))
    }

    /// The next thing that is due. `charge` says what a command is and takes, and how many changes it is, when its turn comes: all
    /// before it have been carried out.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        charge: &mut dyn FnMut(&T, Batch) -> (WorkKind, u32, Charge),
    ) -> Option<Step<T>> {
        self.close(now);
        if self
            .answer
            .is_some_and(|answer| answer <= now && self.current.as_ref().is_none_or(|c| answer <= c.record.ended))
        {
            let due = self.answer.take()?;
            let barrier = self.barriers.pop_front()?;
            self.look_at_barrier();
            return Some(Step::Answer { item: barrier.item, due });
        }
        if let Some(Current { item, record, member }) = self.current.take_if(|current| current.record.ended <= now) {
            self.free = record.ended;
            self.done += 1;
            self.look_at_barrier();
            return Some(Step::Done { item, record, member });
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
        let Waiting { item, came } = first?;
        self.waiting -= 1;
        let (kind, writes, Charge { duration_s, moved, full, member }) =
            charge(&item, Batch { commands: together, most: self.batching.most });
        let ended = began + Duration::try_from_secs_f64(duration_s).unwrap_or(Duration::ZERO);
        let record = Record { kind, came, began, ended, batch: together, moved, full };
        self.current = Some(Current { item, record, member });
        Some(Step::Begun { at: began, writes })
    }

    /// Works out when the first barrier is answered, if the commands before it are done.
    fn look_at_barrier(&mut self) {
        let Some(barrier) = self.barriers.front() else { return };
        if self.answer.is_none() && barrier.after <= self.done {
            let from = if barrier.after == 0 { barrier.came } else { barrier.came.max(self.free) };
            let lag = self.lag.draw_ns(0);
            let answer = from + Duration::try_from_secs_f64(lag / 1e9).unwrap_or(Duration::ZERO);
            // Barriers do not overtake each other.
            self.answered = self.answered.max(answer);
            self.answer = Some(self.answered);
        }
    }
}
