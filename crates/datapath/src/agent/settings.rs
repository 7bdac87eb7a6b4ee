//! Handles the switch configuration and the roles of channels.
use super::AgentRequest;
use crate::ChannelId;
use crate::channels::DatapathChannels;
use weir_openflow::Version;
use weir_openflow::model::error::{RoleRequestFailed, SwitchConfigFailed};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::status::ControllerReason;
use weir_openflow::model::{Body, ErrorType, NxMessage, SwitchConfig};

/// `OFPC_FRAG_*`: the two lowest bits of the switch configuration's flags.
const FRAGMENT_BITS: u16 = 0b11;
const FRAGMENT_NORMAL: u16 = 0;
const FRAGMENT_DROP: u16 = 1;

/// Returns the switch configuration as a channel sees it.
pub(super) fn switch_config(drops_fragments: bool, channels: &DatapathChannels, channel: ChannelId) -> SwitchConfig {
    SwitchConfig {
        flags: if drops_fragments { FRAGMENT_DROP } else { FRAGMENT_NORMAL },
        miss_send_len: channels.get(channel).map_or(0, |channel| channel.miss_send_len),
    }
}

/// Sets the switch configuration. The handling of fragments applies to the whole switch; `miss_send_len` applies
/// to the channel. Reassembly is refused, because the features do not announce it. Version 1.0 has no error for
/// that, so there it changes nothing.
pub(super) fn set_switch_config(
    drops_fragments: &mut bool,
    channels: &mut DatapathChannels,
    config: SwitchConfig,
    request: &mut AgentRequest<'_>,
) -> Result<(), ErrorType> {
    let fragments = config.flags & FRAGMENT_BITS;
    let is_known = config.flags == fragments && fragments <= FRAGMENT_DROP;
    if !is_known && request.version != Version::V10 {
        return Err(SwitchConfigFailed::BadFlags.into());
    }
    // Slaves may not change settings of the whole switch. Open vSwitch ignores the setting, too.
    if fragments <= FRAGMENT_DROP && channels.role_of(request.channel) != Role::Slave {
        *drops_fragments = fragments == FRAGMENT_DROP;
    }
    if let Some(channel) = channels.get_mut(request.channel) {
        channel.miss_send_len = config.miss_send_len;
        channel.listens |= config.miss_send_len != 0;
    }
    Ok(())
}

/// Changes a channel's role as its controller requests it, and tells the other controllers.
pub(super) fn role_request(
    channels: &mut DatapathChannels,
    asked: RoleMessage,
    request: &mut AgentRequest<'_>,
) -> Result<(), ErrorType> {
    if matches!(asked.role, Role::Unknown(_)) {
        return Err(RoleRequestFailed::BadRole.into());
    }
    let main = channels.main_of(request.channel);
    let before = channels.get(main).map(|channel| (channel.role, channel.short_id));
    let (held, displaced) = channels.request_role(main, asked)?;
    request.reply(Body::RoleReply(held));
    channels.tell_displaced(&displaced, held, request.out);
    for channel in displaced {
        channels.tell_controller_status(channel, ControllerReason::Role, request.out);
    }
    let after = channels.get(main).map(|channel| (channel.role, channel.short_id));
    if before.map(|(role, _)| role) != after.map(|(role, _)| role) {
        channels.tell_controller_status(main, ControllerReason::Role, request.out);
    } else if before != after {
        channels.tell_controller_status(main, ControllerReason::ShortId, request.out);
    }
    Ok(())
}

/// Handles Nicira's role request. Unlike the request of 1.3 it has no election: the latest request wins.
pub(super) fn nicira_role(
    channels: &mut DatapathChannels,
    asked: RoleMessage,
    request: &mut AgentRequest<'_>,
) -> Result<(), ErrorType> {
    if matches!(asked.role, Role::Unknown(_)) {
        return Err(RoleRequestFailed::BadRole.into());
    }
    let displaced = channels.give_role(request.channel, asked.role);
    request.reply(Body::Nx(Box::new(NxMessage::RoleReply(asked))));
    channels.tell_displaced(&displaced, asked, request.out);
    Ok(())
}
