//! What became of commands.
use weir_units::Instant;

/// Records that are kept until somebody takes them; the oldest go first.
pub const MAX_RECORDS: usize = 1 << 16;

/// The first line of a file of records.
pub const CSV_HEAD: &str = "kind,came_s,start_s,delay_s,batch,moved,full,effect_s";

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// It adds an entry.
    Add,
    /// It modifies entries.
    Modify,
    /// It deletes entries.
    Delete,
    /// It carries out a bundle.
    Bundle,
    /// It is refused for another reason than full tables.
    Nothing,
}

/// A command that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// What it did.
    pub kind: WorkKind,
    /// When it came.
    pub came: Instant,
    /// When the switch began it.
    pub began: Instant,
    /// When it was done.
    pub ended: Instant,
    /// From when on packets met what it changed: when it was done, but for devices whose changes take effect later.
    pub shown: Instant,
    /// Commands of its batch.
    pub batch: u32,
    /// Entries that moved down a level for it.
    pub moved: u32,
    /// It was refused, since all levels were full.
    pub full: bool,
}

impl Record {
    /// As a line of a file; see [`CSV_HEAD`]. `delay_s` is from when it came until it was done, `effect_s` from then until packets
    /// met what it changed.
    pub fn csv(&self) -> String {
        let Record { kind, came, began, ended, shown, batch, moved, full } = self;
        let kind = match kind {
            WorkKind::Add => "add",
            WorkKind::Modify => "modify",
            WorkKind::Delete => "delete",
            WorkKind::Bundle => "bundle",
            WorkKind::Nothing => "nothing",
        };
        let [came_s, start_s] = [came, began].map(|at| at.as_secs_f64());
        let delay_s = ended.since(*came).as_secs_f64();
        let effect_s = shown.since(*ended).as_secs_f64();
        format!("{kind},{came_s:.9},{start_s:.9},{delay_s:.9},{batch},{moved},{full},{effect_s:.9}")
    }
}
