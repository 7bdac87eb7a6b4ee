//! Place of a router on a switch: tables, priorities, cookie.
use super::metadata::MAX_ROUTER_NUMBER;
use super::single;
use crate::config::VirtualRouterConfig;
use serde::{Deserialize, Serialize};

/// Tables of the longer pipeline.
pub const TABLES: u8 = 7;
/// Bits of a cookie that differ between the entries of a router: the stage of the pipeline.
pub const COOKIE_BITS: u64 = 0xff;
/// Highest number of a table.
const LAST_TABLE: u16 = 254;
/// Priorities that the longer pipeline uses above its base.
pub(super) const PRIORITIES_SEVERAL: u32 = 1200;

/// Place of a router on a switch that others may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterPlacement {
    /// Number of the router, 1 to [`MAX_ROUTER_NUMBER`], different for each router of a switch.
    pub number: u16,
    /// First table that packets meet.
    pub first_table: u8,
    /// Number of tables from there on that the router may use. Routers may share them.
    pub tables: u8,
    /// Cookie of the entries, different for each router of a switch. The bits [`COOKIE_BITS`] must be 0.
    pub cookie: u64,
    /// Lowest priority of the entries.
    pub priority: u16,
    /// True if all entries are about packets of the router's own ports and VLANs, so that others can use the rest of
    /// the switch. False for a router that has the switch to itself: packets of other ports are dropped.
    pub confined: bool,
}

/// Form of the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterPipeline {
    /// A table for each stage.
    Several,
    /// A single table for all stages.
    Single,
}

/// Error: a placement has no room for a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouterPlacementError {
    /// The router's number does not fit into the metadata.
    #[error("found router number {0}, expected 1 to {MAX_ROUTER_NUMBER}")]
    RouterNumber(u16),
    /// The switch has no such tables.
    #[error("found {tables} tables from table {first} on, expected at least one, up to table 254")]
    Tables {
        /// First table.
        first: u8,
        /// Number of tables.
        tables: u8,
    },
    /// The cookie has bits that stages need.
    #[error("found cookie {0:#x}, expected one whose low eight bits are 0")]
    Cookie(u64),
    /// The priorities above the base are too few.
    #[error("found {found} priorities above {base}, expected at least {needed}; lower the base, or give it 7 tables")]
    Priorities {
        /// Base of the placement.
        base: u16,
        /// Priorities from there on.
        found: u32,
        /// Priorities that the router needs.
        needed: u32,
    },
    /// The single table would have too many entries.
    #[error("found more than {most} entries in a single table, expected fewer; give the router 7 tables")]
    Entries {
        /// Most entries.
        most: usize,
    },
}

impl RouterPlacement {
    /// Returns the place of a router that has a switch with at least [`TABLES`] tables to itself.
    pub const fn whole_switch() -> RouterPlacement {
        RouterPlacement::confined(1, 0, TABLES).alone()
    }

    /// Returns the place of a router that shares a switch: its number, and tables.
    pub const fn confined(number: u16, first_table: u8, tables: u8) -> RouterPlacement {
        // `vr` in ASCII, then the number.
        let cookie = 0x7672_0000_0000_0000 | (number as u64) << 8;
        RouterPlacement { number, first_table, tables, cookie, priority: 1000, confined: true }
    }

    const fn alone(self) -> RouterPlacement {
        RouterPlacement { confined: false, ..self }
    }

    /// Returns the form that the entries have.
    pub const fn pipeline(&self) -> RouterPipeline {
        if self.tables >= TABLES { RouterPipeline::Several } else { RouterPipeline::Single }
    }

    /// Returns true if an entry with this cookie is one of the router's.
    pub const fn has_cookie(&self, cookie: u64) -> bool {
        cookie & !COOKIE_BITS == self.cookie
    }

    /// Returns the highest table that the router uses.
    pub const fn last_table(&self) -> u8 {
        match self.pipeline() {
            RouterPipeline::Several => self.first_table.saturating_add(TABLES - 1),
            RouterPipeline::Single => self.first_table,
        }
    }

    /// Checks the placement, for a router.
    ///
    /// # Errors
    /// The number that is wrong, and what was expected.
    pub fn check(&self, config: &VirtualRouterConfig) -> Result<(), RouterPlacementError> {
        if !(1..=MAX_ROUTER_NUMBER).contains(&self.number) {
            return Err(RouterPlacementError::RouterNumber(self.number));
        }
        let (first, tables) = (self.first_table, self.tables);
        if tables == 0 || u16::from(first) + u16::from(tables) > LAST_TABLE + 1 {
            return Err(RouterPlacementError::Tables { first, tables });
        }
        if self.cookie & COOKIE_BITS != 0 {
            return Err(RouterPlacementError::Cookie(self.cookie));
        }
        let needed = match self.pipeline() {
            RouterPipeline::Several => PRIORITIES_SEVERAL,
            RouterPipeline::Single => single::priorities(config),
        };
        let (base, found) = (self.priority, u32::from(u16::MAX - self.priority));
        if found < needed { Err(RouterPlacementError::Priorities { base, found, needed }) } else { Ok(()) }
    }
}
