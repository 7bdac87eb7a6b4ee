//! Lists a lab's links and changes them during the run.
use super::command::{LabLinkId, LinkChange};
use crate::{Dilation, Lab, LabError};
use std::io::Write;
use weir_port::link::{LinkControl, LinkParameters, LinkShape};
use weir_traffic::TrafficError;
use weir_traffic::impair::{JitterLaw, LinkJitter, LinkLoss};
use weir_units::{ByteSize, TimeSpan};

/// Lists all links.
pub(super) fn list(lab: &Lab, out: &mut dyn Write) -> std::io::Result<()> {
    let scenario = lab.scenario();
    for (host, control) in scenario.hosts.iter().zip(lab.access_controls()) {
        let switch = &scenario.switches[host.switch].name;
        writeln!(out, "{} - {switch}:{}  {}", host.name, host.port, described(lab, &control.wanted()))?;
    }
    for (link, controls) in scenario.links.iter().zip(lab.link_controls()) {
        let [a, b] = link.ends.map(|end| format!("{}:{}", scenario.switches[end.switch].name, end.port));
        writeln!(out, "{a} - {b}  {}", described(lab, &controls[0].wanted()))?;
    }
    Ok(())
}

/// Describes a link's settings in the scenario's time.
fn described(lab: &Lab, wanted: &LinkParameters) -> String {
    let LinkShape { rate, delay, buffer, jitter, loss } = wanted.egress;
    let rate = rate.map(|rate| lab.dilation().faster(rate).to_string());
    let delay = (!delay.is_zero()).then(|| format!("delay {}", TimeSpan(lab.dilation().told(delay))));
    let buffer = buffer.filter(|_| rate.is_some()).map(|ByteSize(bytes)| format!("buffer {bytes} B"));
    let jitter = jitter.map(|jitter| format!("jitter {}", TimeSpan(lab.dilation().told(jitter.size))));
    let loss = loss.map(|loss| format!("loss {} %", (loss.share * 1e8).round() / 1e6));
    let settings: Vec<String> = rate.into_iter().chain(delay).chain(buffer).chain(jitter).chain(loss).collect();
    let settings = if settings.is_empty() { "as fast as the machine".to_owned() } else { settings.join(", ") };
    format!("{}, {settings}", if wanted.up { "up" } else { "DOWN" })
}

/// Changes links, both directions alike. Switches see changes of link state at once.
///
/// # Errors
/// A link cannot have a setting, in which case nothing has changed; or a switch has ended.
pub(super) fn change(lab: &Lab, links: &[LabLinkId], changes: &[LinkChange]) -> Result<(), LabError> {
    let scenario = lab.scenario();
    let mut ends: Vec<(&LinkControl, LinkParameters)> = Vec::new();
    let mut switches = Vec::new();
    for place in links {
        let controls = match place {
            LabLinkId::Access(host) => {
                switches.push(scenario.hosts[*host].switch);
                &lab.access_controls()[*host..=*host]
            }
            LabLinkId::Between(link) => {
                switches.extend(scenario.links[*link].ends.map(|end| end.switch));
                &lab.link_controls()[*link][..]
            }
        };
        for control in controls {
            ends.push((control, changed(lab.dilation(), control.wanted(), changes)?));
        }
    }
    ends.into_iter().for_each(|(control, wanted)| control.change(|now| *now = wanted));
    // A link is up once both its ends are. Two rounds are needed because the end examined first sees the link up only
    // in the second.
    for _ in 0..2 {
        switches.iter().try_for_each(|switch| lab.switch(*switch).look_at_links())?;
    }
    Ok(())
}

fn changed(dilation: Dilation, mut wanted: LinkParameters, changes: &[LinkChange]) -> Result<LinkParameters, LabError> {
    // A link between switches applies its settings at each sending end. A link to a host applies them at the switch,
    // for both directions.
    let both_ways = wanted.ingress == wanted.egress;
    let shape = &mut wanted.egress;
    for change in changes {
        match *change {
            LinkChange::Up(up) => wanted.up = up,
            LinkChange::Rate(rate) => shape.rate = rate.map(|rate| dilation.slower(rate)),
            LinkChange::Delay(delay) => shape.delay = dilation.slowed(delay),
            LinkChange::Buffer(buffer) => shape.buffer = Some(buffer),
            LinkChange::Jitter(size) => {
                let size = dilation.slowed(size);
                let jitter = shape.jitter.unwrap_or(LinkJitter { size, law: JitterLaw::Uniform, reorder: false });
                shape.jitter = (!size.is_zero()).then_some(LinkJitter { size, ..jitter });
            }
            LinkChange::Loss(share) => {
                let burst = shape.loss.and_then(|loss| loss.burst);
                shape.loss = (share > 0.0).then_some(LinkLoss { share, burst });
            }
        }
    }
    let wrong = |problem: TrafficError| LabError::Scenario(format!("link: {problem}"));
    shape.jitter.map_or(Ok(()), |jitter| jitter.check(shape.delay)).map_err(wrong)?;
    shape.loss.map_or(Ok(()), |loss| loss.check()).map_err(wrong)?;
    if both_ways {
        wanted.ingress = wanted.egress;
    }
    Ok(wanted)
}
