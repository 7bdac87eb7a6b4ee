//! Controller roles and asynchronous configuration.
use super::property::Property;
use serde::Serialize;

/// `ofp_role_request`, request or reply (OpenFlow 1.3.5, 7.3.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RoleMessage {
    /// The role asked for, or held.
    pub role: Role,
    /// 1.5: a number that the controller gives itself, for controller-status messages; 0 for none.
    pub short_id: u16,
    /// Guards against stale elections.
    pub generation_id: u64,
}

/// A controller's role. A number weir does not know is kept so that the switch can refuse it by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum Role {
    NoChange,
    Equal,
    Master,
    Slave,
    Unknown(u32),
}

/// `ofp_async_config` (OpenFlow 1.3.5, 7.3.10; OpenFlow 1.4.1, 7.3.8): for each kind of message a bitmap of reasons, first for
/// master and equal, then for slave. 1.3 has the first three kinds and always tells them all; later versions tell some of
/// them, and a request leaves those that it does not tell (`None`) as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[allow(missing_docs, reason = "named by the specification")]
pub struct AsyncConfig {
    pub packet_in: [Option<u32>; 2],
    pub port_status: [Option<u32>; 2],
    pub flow_removed: [Option<u32>; 2],
    /// 1.4.
    pub role_status: [Option<u32>; 2],
    /// 1.4.
    pub table_status: [Option<u32>; 2],
    /// 1.4.
    pub requestforward: [Option<u32>; 2],
    /// 1.5: flow statistics that an entry's threshold sends.
    pub flow_stats: [Option<u32>; 2],
    /// 1.5.
    pub controller_status: [Option<u32>; 2],
    /// Properties of experimenters, and those weir does not know, in the order they came.
    pub properties: Vec<Property>,
}

impl AsyncConfig {
    /// Number of kinds of messages.
    pub const KINDS: usize = 8;

    /// The bitmaps of each kind, in the order of their numbers in 1.4 and 1.5.
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

    /// The same, to be changed.
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

    /// Takes over what `change` tells; the properties that are not looked into are left out.
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
