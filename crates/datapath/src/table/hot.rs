//! Encodes the outcome for packets that match an entry in one word. The word lies in the same cache line as the
//! entry's compared words and counters.
use crate::program::Program;
use weir_openflow::model::{Action, PortNo};

/// Outcome for packets that match an entry, for outcomes that fit in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
    /// Output to an ordinary port, without changes.
    Output(PortNo),
    /// Edits of the packet ([`Program::edits`]), then output to an ordinary port.
    Edit(PortNo),
    /// Continue in this table; nothing else happens.
    Goto(u8),
    /// Any other outcome: the entry's program must be run.
    #[default]
    Program,
}

impl Verdict {
    /// Returns the verdict for a program.
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

/// A verdict in one word; zero for [`Verdict::Program`].
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
