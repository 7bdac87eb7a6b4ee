//! Handles the switch configuration, and the roles and asynchronous messages of channels.
use super::AgentRequest;
use crate::{ChannelId, Datapath};
use weir_openflow::Version;
use weir_openflow::model::error::{RoleRequestFailed, SwitchConfigFailed};
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::status::ControllerReason;
use weir_openflow::model::{Body, ErrorType, SwitchConfig};

/// `OFPC_FRAG_*`: the two lowest bits of the switch configuration's flags.
const FRAGMENT_BITS: u16 = 0b11;
const FRAGMENT_NORMAL: u16 = 0;
const FRAGMENT_DROP: u16 = 1;

impl Datapath {
    pub(super) fn switch_config(&self, channel: ChannelId) -> SwitchConfig {
        SwitchConfig {
            flags: if self.drops_fragments { FRAGMENT_DROP } else { FRAGMENT_NORMAL },
            miss_send_len: self.plane.channels.get(channel).map_or(0, |channel| channel.miss_send_len),
        }
    }

    /// Sets the switch configuration. The handling of fragments applies to the whole switch; `miss_send_len` applies
    /// to the channel. Reassembly is refused, because the features do not announce it. Version 1.0 has no error for
    /// that, so there it changes nothing.
    pub(super) fn set_switch_config(
        &mut self,
        config: SwitchConfig,
        request: &mut AgentRequest<'_>,
    ) -> Result<(), ErrorType> {
        let fragments = config.flags & FRAGMENT_BITS;
        let is_known = config.flags == fragments && fragments <= FRAGMENT_DROP;
        if !is_known && request.version != Version::V10 {
            return Err(SwitchConfigFailed::BadFlags.into());
        }
        // Slaves may not change settings of the whole switch. Open vSwitch ignores the setting, too.
        if fragments <= FRAGMENT_DROP && self.role_of(request.channel) != Role::Slave {
            self.drops_fragments = fragments == FRAGMENT_DROP;
        }
        if let Some(channel) = self.plane.channels.get_mut(request.channel) {
            channel.miss_send_len = config.miss_send_len;
            channel.listens |= config.miss_send_len != 0;
        }
        Ok(())
    }

    /// Returns the main connection of a connection.
    pub(crate) fn main_of(&self, channel: ChannelId) -> ChannelId {
        self.plane.channels.auxiliaries().main_of(channel)
    }

    pub(crate) fn role_of(&self, channel: ChannelId) -> Role {
        self.plane.channels.get(channel).map_or(Role::Equal, |channel| channel.role)
    }

    pub(super) fn role_request(&mut self, asked: RoleMessage, request: &mut AgentRequest<'_>) -> Result<(), ErrorType> {
        if matches!(asked.role, Role::Unknown(_)) {
            return Err(RoleRequestFailed::BadRole.into());
        }
        let main = self.main_of(request.channel);
        let before = self.plane.channels.get(main).map(|channel| (channel.role, channel.short_id));
        let (held, displaced) = self.plane.channels.request_role(main, asked)?;
        request.reply(Body::RoleReply(held));
        self.tell_displaced(&displaced, held, request.out);
        for channel in displaced {
            self.tell_controller_status(channel, ControllerReason::Role, request.out);
        }
        let after = self.plane.channels.get(main).map(|channel| (channel.role, channel.short_id));
        if before.map(|(role, _)| role) != after.map(|(role, _)| role) {
            self.tell_controller_status(main, ControllerReason::Role, request.out);
        } else if before != after {
            self.tell_controller_status(main, ControllerReason::ShortId, request.out);
        }
        Ok(())
    }

    pub(super) fn async_config(&self, channel: ChannelId) -> AsyncConfig {
        self.plane.channels.get(channel).map(|channel| channel.asynchronous.clone()).unwrap_or_default()
    }

    pub(super) fn set_async_config(&mut self, channel: ChannelId, config: &AsyncConfig) {
        if let Some(channel) = self.plane.channels.get_mut(channel) {
            channel.asynchronous.update(config);
            channel.listens = true;
        }
    }
}
