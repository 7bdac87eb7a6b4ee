//! Records the course of commands.
use weir_units::Instant;

/// Most records kept until they are taken; the oldest are dropped first.
pub const MAX_RECORDS: usize = 1 << 16;

/// First line of a file of records.
pub const CSV_HEAD: &str = "kind,came_s,start_s,delay_s,batch,moved,full,effect_s";

/// Effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableEffectKind {
    /// Adds an entry.
    Add,
    /// Modifies or replaces entries.
    Modify,
    /// Deletes matching entries.
    Delete,
    /// Carries out a bundle.
    Bundle,
    /// Changes nothing: refused for another reason than full tables.
    Nothing,
}

/// Course of a command that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandRecord {
    /// Effect of the command.
    pub kind: TableEffectKind,
    /// Arrival time of the command.
    pub came: Instant,
    /// Start of its execution.
    pub began: Instant,
    /// End of its execution.
    pub ended: Instant,
    /// Time from which packets see its changes: the end of its execution, except for devices whose changes take
    /// effect later.
    pub shown: Instant,
    /// Number of commands in its batch.
    pub batch: u32,
    /// Number of entries moved to the next level for it.
    pub moved: u32,
    /// True if it was refused because all levels were full.
    pub full: bool,
}

impl CommandRecord {
    /// Returns the record as a line of a file; see [`CSV_HEAD`]. `delay_s` is the time from arrival to the end of
    /// execution, `effect_s` from then until packets see the changes, both in seconds.
    pub fn csv(&self) -> String {
        let CommandRecord { kind, came, began, ended, shown, batch, moved, full } = self;
        let kind = match kind {
            TableEffectKind::Add => "add",
            TableEffectKind::Modify => "modify",
            TableEffectKind::Delete => "delete",
            TableEffectKind::Bundle => "bundle",
            TableEffectKind::Nothing => "nothing",
        };
        let [came_s, start_s] = [came, began].map(|at| at.as_secs_f64());
        let delay_s = ended.since(*came).as_secs_f64();
        let effect_s = shown.since(*ended).as_secs_f64();
        format!("{kind},{came_s:.9},{start_s:.9},{delay_s:.9},{batch},{moved},{full},{effect_s:.9}")
    }
}
