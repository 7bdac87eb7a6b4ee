//! Defines the outcomes of table lookups. The outcome for packets of an entry is encoded in one word, which lies in the
//! same cache line as the entry's compared words and counters.
use crate::shape::EntryId;
use weir_openflow::model::PortNo;

/// Outcome for packets that match an entry, for outcomes that fit in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EntryVerdict {
    /// Output to an ordinary port, without changes.
    Output(PortNo),
    /// Edits of the packet (`EntryProgram::edits`), then output to an ordinary port.
    Edit(PortNo),
    /// Continue in this table; nothing else happens.
    Goto(u8),
    /// Any other outcome: the entry's program must be run.
    #[default]
    Program,
}

/// Verdict for a packet, and the table and entry that the verdict comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LookupResult {
    pub(crate) verdict: VerdictWord,
    pub(crate) table: u8,
    pub(crate) entry: EntryId,
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
