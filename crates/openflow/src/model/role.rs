//! Defines the messages about controller roles and asynchronous configuration.
use super::numbered::numbered_enum;
use super::property::RawProperty;
use serde::Serialize;

/// Role request or reply, `ofp_role_request` (OpenFlow 1.3.5, 7.3.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoleMessage {
    /// Requested role, or current role in a reply.
    pub role: Role,
    /// 1.5: number that the controller chooses for itself, used in controller-status messages; 0 for none.
    pub short_id: u16,
    /// Election number; the switch refuses requests of older elections.
    pub generation_id: u64,
}

numbered_enum! {
    /// Role of a controller, `OFPCR_ROLE_*` (OpenFlow 1.3.5, 7.3.9).
    #[derive(Serialize)]
    pub enum Role: u32 {
        /// `OFPCR_ROLE_NOCHANGE`: asks for the current role.
        NoChange = 0,
        /// `OFPCR_ROLE_EQUAL`: full access, as other controllers have.
        Equal = 1,
        /// `OFPCR_ROLE_MASTER`: full access; the former master becomes a slave.
        Master = 2,
        /// `OFPCR_ROLE_SLAVE`: read access.
        Slave = 3,
    }
}

/// Selection of asynchronous messages, `ofp_async_config` (OpenFlow 1.3.5, 7.3.10; OpenFlow 1.4.1, 7.3.8). For each
/// kind of message a bitmap of reasons: first for the roles master and equal, then for slave.
///
/// 1.3 has the first three kinds and always carries all of them. In later versions a message may carry only some; a
/// request leaves the settings of missing ones (`None`) unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct AsyncConfig {
    pub packet_in: [Option<u32>; 2],
    pub port_status: [Option<u32>; 2],
    pub flow_removed: [Option<u32>; 2],
    /// 1.4 and later.
    pub role_status: [Option<u32>; 2],
    /// 1.4 and later.
    pub table_status: [Option<u32>; 2],
    /// 1.4 and later.
    pub requestforward: [Option<u32>; 2],
    /// 1.5: flow statistics sent because a threshold of a flow entry was reached.
    pub flow_stats: [Option<u32>; 2],
    /// Only in OpenFlow 1.5.
    pub controller_status: [Option<u32>; 2],
    /// Experimenters' and unknown properties, in the order received.
    pub properties: Vec<RawProperty>,
}

impl AsyncConfig {
    /// Number of message kinds.
    pub const KINDS: usize = 8;

    /// Returns the bitmaps of all kinds, in the order of their numbers in 1.4 and 1.5.
    pub const fn kinds(&self) -> [[Option<u32>; 2]; Self::KINDS] {
        [
            self.packet_in,
            self.port_status,
            self.flow_removed,
            self.role_status,
            self.table_status,
            self.requestforward,
            self.flow_stats,
            self.controller_status,
        ]
    }

    /// Returns mutable references to the bitmaps of all kinds, in the order of [`AsyncConfig::kinds`].
    pub const fn kinds_mut(&mut self) -> [&mut [Option<u32>; 2]; Self::KINDS] {
        [
            &mut self.packet_in,
            &mut self.port_status,
            &mut self.flow_removed,
            &mut self.role_status,
            &mut self.table_status,
            &mut self.requestforward,
            &mut self.flow_stats,
            &mut self.controller_status,
        ]
    }

    /// Overwrites the bitmaps that `change` carries. Ignores its `properties`.
    pub fn update(&mut self, change: &AsyncConfig) {
        for (mine, theirs) in self.kinds_mut().into_iter().zip(change.kinds()) {
            *mine = [theirs[0].or(mine[0]), theirs[1].or(mine[1])];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_it_does_not_tell() {
        let mut config = AsyncConfig { packet_in: [Some(1), Some(2)], ..AsyncConfig::default() };
        config.update(&AsyncConfig { packet_in: [None, Some(4)], table_status: [Some(8), None], ..Default::default() });
        assert_eq!((config.packet_in, config.table_status), ([Some(1), Some(4)], [Some(8), None]));
    }
}
