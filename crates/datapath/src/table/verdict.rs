//! Encodes the outcome for packets that match an entry in one word. The word lies in the same cache line as the
//! entry's compared words and counters.
use crate::program::EntryProgram;
use weir_openflow::model::{Action, PortNo};

/// Outcome for packets that match an entry, for outcomes that fit in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EntryVerdict {
    /// Output to an ordinary port, without changes.
    Output(PortNo),
    /// Edits of the packet ([`EntryProgram::edits`]), then output to an ordinary port.
    Edit(PortNo),
    /// Continue in this table; nothing else happens.
    Goto(u8),
    /// Any other outcome: the entry's program must be run.
    #[default]
    Program,
}

impl EntryVerdict {
    /// Returns the verdict for a program.
    pub(crate) fn of(program: &EntryProgram) -> EntryVerdict {
        let only_goto = program.apply.as_deref().unwrap_or_default().is_empty() && !program.prepares;
        match (program.meter, program.goto) {
            (None, Some(table)) if only_goto => return EntryVerdict::Goto(table),
            (None, None) => {}
            _ => return EntryVerdict::Program,
        }
        if let Some(edits) = &program.edits {
            return EntryVerdict::Edit(edits.1);
        }
        let apply = program.apply.as_deref().unwrap_or_default();
        let write = program.write.as_deref().unwrap_or_default();
        match (apply, write, program.metadata) {
            ([Action::Output { port, .. }], [], None) | ([], [Action::Output { port, .. }], None)
                if *port <= PortNo::MAX =>
            {
                EntryVerdict::Output(*port)
            }
            _ => EntryVerdict::Program,
        }
    }
}

/// A verdict in one word; zero for [`EntryVerdict::Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VerdictWord(u64);

impl VerdictWord {
    const OUTPUT: u64 = 1 << 32;
    const GOTO: u64 = 2 << 32;
    const EDIT: u64 = 3 << 32;
    /// Number of bits in use, from the lowest on.
    pub(crate) const BITS: u32 = 34;

    /// Returns the word.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Creates a verdict word from the low [`VerdictWord::BITS`] bits of a word.
    #[inline(always)]
    pub(crate) const fn of_bits(word: u64) -> VerdictWord {
        VerdictWord(word & ((1 << Self::BITS) - 1))
    }

    pub(crate) fn new(verdict: EntryVerdict) -> VerdictWord {
        VerdictWord(match verdict {
            EntryVerdict::Output(port) => Self::OUTPUT | u64::from(port.0),
            EntryVerdict::Goto(table) => Self::GOTO | u64::from(table),
            EntryVerdict::Edit(port) => Self::EDIT | u64::from(port.0),
            EntryVerdict::Program => 0,
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is the port or table")]
    #[inline(always)]
    pub(crate) fn get(self) -> EntryVerdict {
        match self.0 >> 32 << 32 {
            Self::OUTPUT => EntryVerdict::Output(PortNo(self.0 as u32)),
            Self::GOTO => EntryVerdict::Goto(self.0 as u8),
            Self::EDIT => EntryVerdict::Edit(PortNo(self.0 as u32)),
            _ => EntryVerdict::Program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_the_verdict_says() {
        let verdicts = [
            EntryVerdict::Program,
            EntryVerdict::Output(PortNo(0)),
            EntryVerdict::Output(PortNo::MAX),
            EntryVerdict::Goto(0),
            EntryVerdict::Goto(253),
            EntryVerdict::Edit(PortNo(1)),
            EntryVerdict::Edit(PortNo::MAX),
        ];
        for verdict in verdicts {
            let word = VerdictWord::new(verdict);
            assert_eq!(word.get(), verdict);
            assert_eq!(VerdictWord::of_bits(word.bits() | 7 << VerdictWord::BITS), word, "other bits are not its");
        }
        assert_eq!(VerdictWord::new(EntryVerdict::Program), VerdictWord::default());
    }
}
