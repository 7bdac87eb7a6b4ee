//! In-band control of a switch: its settings, and what they require of ports and controllers.
use crate::config::SoftwareSwitchConfig;
use crate::handle::SwitchError;
use crate::targets::{ControllerHost, ControllerSpec, ControllerTarget};
use std::net::SocketAddr;
use std::time::Duration;
use weir_datapath::{InBandConfig, MAX_IN_BAND_CONTROLLERS};
use weir_openflow::model::PortNo;

/// Bounds of the time without an answer after which the path to a controller counts as broken. TCP acknowledges within
/// 40 ms on a working path, and sends a lost segment again after at least 200 ms.
const SILENCE: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// Part of the echo interval in which a broken path is given up, so that the session outlives it.
const SILENCES_IN_INTERVAL: u32 = 4;

/// VLANs that tags can name (IEEE 802.1Q, 9.6).
const VLANS: std::ops::RangeInclusive<u16> = 1..=4094;
/// The reason why a switch has either in-band control or virtual switches.
pub(crate) const VIRTUAL_SWITCHES: &str = "found virtual switches, expected none: control traffic is forwarded before a \
    virtual switch is chosen, so it would leave by ports, and take rates and buffers, that belong to tenants. Reach the \
    controllers of a divided switch over a network of their own";

/// Settings of in-band control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InBandSettings {
    /// Queue of the output port that control traffic waits in; the default queue if none is given.
    pub queue: Option<u32>,
    /// VLAN whose tag control traffic carries on all ports, LOCAL included (1 to 4094); untagged if none is given.
    pub vlan: Option<u16>,
}

/// Returns the configuration of in-band control for a switch; `None` if it is off.
///
/// # Errors
/// The switch has no local port, has virtual switches (`has_virtuals`), or has no controller that can be reached in
/// band.
pub(crate) fn config(config: &SoftwareSwitchConfig, has_virtuals: bool) -> Result<Option<InBandConfig>, SwitchError> {
    let Some(settings) = config.in_band else { return Ok(None) };
    let wrong = |problem: &str| Err(SwitchError::Request(format!("in-band: {problem}")));
    if !config.ports.iter().any(|port| port.number == Some(PortNo::LOCAL)) {
        return wrong("found no local port, expected one for the switch's own traffic: --port LOCAL=tap:NAME");
    }
    if has_virtuals || config.fabric.is_some() {
        return wrong(VIRTUAL_SWITCHES);
    }
    if let Some(vlan) = settings.vlan.filter(|vlan| !VLANS.contains(vlan)) {
        return wrong(&format!("found VLAN {vlan}, expected 1 to 4094"));
    }
    let controllers = addresses(&config.controllers)?;
    if controllers.is_empty() {
        return wrong("found no controller, expected one by its IP address: --controller tcp:ADDRESS");
    }
    let interval = config.session.echo_interval;
    let [shortest, longest] = SILENCE;
    let silence = if interval.is_zero() { longest } else { (interval / SILENCES_IN_INTERVAL).clamp(shortest, longest) };
    Ok(Some(InBandConfig { controllers, silence, queue: settings.queue, vlan: settings.vlan }))
}

/// Returns the addresses of the controllers that are reached over a network.
///
/// # Errors
/// One is given by name, or there are more than [`MAX_IN_BAND_CONTROLLERS`].
pub(crate) fn addresses<'a>(
    controllers: impl IntoIterator<Item = &'a ControllerSpec>,
) -> Result<Vec<SocketAddr>, SwitchError> {
    let wrong = |problem: String| SwitchError::Request(format!("in-band: {problem}"));
    let mut found = Vec::new();
    for spec in controllers {
        let (ControllerTarget::Tcp(host) | ControllerTarget::Ssl(host)) = &spec.target else { continue };
        match host {
            ControllerHost::Address(address) => {
                let mut address = *address;
                // A connection to an IPv4 address that is mapped into IPv6 has IPv4 packets (RFC 4291, 2.5.5.2).
                address.set_ip(address.ip().to_canonical());
                if !found.contains(&address) {
                    found.push(address);
                }
            }
            ControllerHost::Name(name, _) => {
                return Err(wrong(format!(
                    "found controller {spec}, expected an IP address: a name can be resolved only over the network that \
                     control traffic has to open first; `getent ahosts {name}` prints the addresses of a name"
                )));
            }
        }
    }
    if found.len() > MAX_IN_BAND_CONTROLLERS {
        return Err(wrong(format!("found {} controllers, expected at most {MAX_IN_BAND_CONTROLLERS}", found.len())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PortConfig;

    fn settings(controllers: &[&str], ports: &[&str]) -> SoftwareSwitchConfig {
        SoftwareSwitchConfig {
            in_band: Some(InBandSettings { queue: Some(3), vlan: Some(20) }),
            controllers: controllers.iter().map(|text| text.parse().unwrap()).collect(),
            ports: ports.iter().map(|text| PortConfig::open(text.parse().unwrap()).unwrap()).collect(),
            ..SoftwareSwitchConfig::default()
        }
    }

    #[test]
    fn what_in_band_control_needs_is_named() {
        let local = ["LOCAL=null:local"];
        for (controllers, ports, problem) in [
            (&["tcp:10.0.0.1"][..], &["1=null:a"][..], "no local port"),
            (&[], &local, "no controller"),
            (&["unix:/run/c"], &local, "no controller"),
            (&["tcp:controller.example"], &local, "tcp:controller.example:6653, expected an IP address"),
            (&["ssl:[fd00::1]", "ssl:c.example"], &local, "getent ahosts c.example"),
        ] {
            let error = config(&settings(controllers, ports), false).unwrap_err().to_string();
            assert!(error.starts_with("in-band: found") && error.contains(problem), "{error}");
        }
        let mut untaggable = settings(&["tcp:10.0.0.1"], &local);
        untaggable.in_band = Some(InBandSettings { queue: None, vlan: Some(4095) });
        let error = config(&untaggable, false).unwrap_err().to_string();
        assert!(error.contains("found VLAN 4095, expected 1 to 4094"), "{error}");
        let right = settings(&["tcp:10.0.0.1", "ssl:[fd00::2]:7000", "tcp:10.0.0.1"], &local);
        assert!(config(&right, true).unwrap_err().to_string().contains("virtual switches"));
        let found = config(&right, false).unwrap().unwrap();
        assert_eq!(found.controllers, ["10.0.0.1:6653".parse().unwrap(), "[fd00::2]:7000".parse().unwrap()]);
        assert_eq!((found.silence, found.queue, found.vlan), (Duration::from_secs(1), Some(3), Some(20)));
        assert_eq!(config(&SoftwareSwitchConfig::default(), true).unwrap(), None);
    }

    #[test]
    fn a_broken_path_is_given_up_within_the_echo_interval() {
        let mut switch = settings(&["tcp:10.0.0.1"], &["LOCAL=null:local"]);
        for (interval_ms, silence_ms) in [(0, 1000), (100, 250), (2000, 500), (60_000, 1000)] {
            switch.session.echo_interval = Duration::from_millis(interval_ms);
            let found = config(&switch, false).unwrap().unwrap();
            assert_eq!(found.silence, Duration::from_millis(silence_ms), "{interval_ms} ms");
        }
    }

    #[test]
    fn mapped_addresses_are_those_of_ipv4() {
        let controllers = ["tcp:[::ffff:10.0.0.1]:7000", "tcp:10.0.0.1:7000", "tcp:[fd00::1]", "ssl:[::ffff:10.0.0.1]"];
        let found = addresses(&controllers.map(|text| text.parse().unwrap())).unwrap();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.0.0.1:7000", "[fd00::1]:6653", "10.0.0.1:6653"]);
    }

    #[test]
    fn there_are_at_most_so_many_controllers() {
        let many: Vec<ControllerSpec> = (0..17).map(|n| format!("tcp:10.0.0.{n}").parse().unwrap()).collect();
        assert_eq!(addresses(&many[..16]).unwrap().len(), MAX_IN_BAND_CONTROLLERS);
        assert!(addresses(&many).unwrap_err().to_string().contains("found 17 controllers, expected at most 16"));
    }
}
