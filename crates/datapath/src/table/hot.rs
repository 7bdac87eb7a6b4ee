//! What packets touch of a flow entry once it is found: its counters and, in short, what it does. 32 bytes, so that an entry of a
//! large table costs a packet one cache line here.
use crate::program::Program;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_openflow::model::{Action, PortNo};
use weir_units::Instant;
use zerocopy::FromZeros;

/// Packets and bytes of an entry.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowCounter {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// When the last packet came, or the entry.
    pub(crate) used: Instant,
}

/// What becomes of a packet that an entry takes, where that can be said in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
    /// It leaves by an ordinary port, as it is.
    Output(PortNo),
    /// It is edited ([`Program::edits`]), then leaves by an ordinary port.
    Edit(PortNo),
    /// The next table decides; nothing else happens.
    Goto(u8),
    /// What the entry's program says: the general way.
    #[default]
    Program,
}

impl Verdict {
    /// What a program comes to.
    pub(crate) fn of(program: &Program) -> Verdict {
        let only_goto = program.apply.as_deref().unwrap_or_default().is_empty() && !program.prepares;
        match (program.meter, program.goto) {
            (None, Some(table)) if only_goto => return Verdict::Goto(table),
            (None, None) => {}
            _ => return Verdict::Program,
        }
        if let Some(edits) = &program.edits {
            return Verdict::Edit(edits.1);
        }
        let apply = program.apply.as_deref().unwrap_or_default();
        let write = program.write.as_deref().unwrap_or_default();
        match (apply, write, program.metadata) {
            ([Action::Output { port, .. }], [], None) | ([], [Action::Output { port, .. }], None)
                if *port <= PortNo::MAX =>
            {
                Verdict::Output(*port)
            }
            _ => Verdict::Program,
        }
    }
}

/// A verdict in one word, zero for [`Verdict::Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromZeros)]
#[repr(transparent)]
pub(crate) struct VerdictWord(u64);

impl VerdictWord {
    const OUTPUT: u64 = 1 << 32;
    const GOTO: u64 = 2 << 32;
    const EDIT: u64 = 3 << 32;
    /// Bits that are used, the low ones.
    pub(crate) const BITS: u32 = 34;

    /// The word.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// The verdict that the low [`VerdictWord::BITS`] bits of a word are.
    #[inline(always)]
    pub(crate) const fn of_bits(word: u64) -> VerdictWord {
        VerdictWord(word & ((1 << Self::BITS) - 1))
    }

    pub(crate) fn new(verdict: Verdict) -> VerdictWord {
        VerdictWord(match verdict {
            Verdict::Output(port) => Self::OUTPUT | u64::from(port.0),
            Verdict::Goto(table) => Self::GOTO | u64::from(table),
            Verdict::Edit(port) => Self::EDIT | u64::from(port.0),
            Verdict::Program => 0,
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is the port or table")]
    #[inline(always)]
    pub(crate) fn get(self) -> Verdict {
        match self.0 >> 32 << 32 {
            Self::OUTPUT => Verdict::Output(PortNo(self.0 as u32)),
            Self::GOTO => Verdict::Goto(self.0 as u8),
            Self::EDIT => Verdict::Edit(PortNo(self.0 as u32)),
            _ => Verdict::Program,
        }
    }
}

/// Counters that one thread writes and others read: plain loads and stores, which cost no more than ordinary memory.
#[derive(Debug, Default, FromZeros)]
#[repr(C)]
pub(crate) struct Count {
    packets: AtomicU64,
    bytes: AtomicU64,
    used: AtomicU64,
}

/// See the module's page.
#[derive(Debug, Default, FromZeros)]
#[repr(C, align(32))]
pub(crate) struct Hot {
    pub(crate) count: Count,
    pub(crate) verdict: VerdictWord,
}

const _: () = assert!(size_of::<Hot>() == 32);

impl Count {
    /// Counts packets; only the thread that these counters belong to does.
    #[inline(always)]
    pub(crate) fn add(&self, packets: u64, bytes: u64, now: Instant) {
        self.packets.store(self.packets.load(Relaxed).wrapping_add(packets), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        self.used.store(now.as_nanos(), Relaxed);
    }

    /// Counts a packet no longer that somebody counted: the sum over all who count is right.
    pub(crate) fn take_back(&self, bytes: u64) {
        self.packets.store(self.packets.load(Relaxed).wrapping_sub(1), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).wrapping_sub(bytes), Relaxed);
    }

    pub(crate) fn read(&self) -> FlowCounter {
        FlowCounter {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            used: Instant::from_nanos(self.used.load(Relaxed)),
        }
    }

    pub(crate) fn set(&mut self, counter: FlowCounter) {
        *self.packets.get_mut() = counter.packets;
        *self.bytes.get_mut() = counter.bytes;
        *self.used.get_mut() = counter.used.as_nanos();
    }
}

impl FlowCounter {
    /// What two threads counted for one entry.
    pub(crate) fn and(self, other: FlowCounter) -> FlowCounter {
        FlowCounter {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
            used: self.used.max(other.used),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_the_verdict_says() {
        let verdicts = [
            Verdict::Program,
            Verdict::Output(PortNo(0)),
            Verdict::Output(PortNo::MAX),
            Verdict::Goto(0),
            Verdict::Goto(253),
            Verdict::Edit(PortNo(1)),
            Verdict::Edit(PortNo::MAX),
        ];
        for verdict in verdicts {
            let word = VerdictWord::new(verdict);
            assert_eq!(word.get(), verdict);
            assert_eq!(VerdictWord::of_bits(word.bits() | 7 << VerdictWord::BITS), word, "other bits are not its");
        }
        assert_eq!(VerdictWord::new(Verdict::Program), VerdictWord::default());
    }
}
