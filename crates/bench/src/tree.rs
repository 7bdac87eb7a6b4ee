//! Network for benchmarks: a tree of switches with service times, a host at each switch, and a flow from each host to
//! the host half the number of switches further in the file.
use anyhow::Context as _;
use std::fmt::Write as _;
use weir_scenario::Scenario;

/// Number of child switches of each switch.
const BRANCHES: usize = 3;

/// Returns a tree of `switches` (2 to 200) with as many hosts and flows. All new flows go to one controller.
pub(super) fn tree(switches: usize) -> anyhow::Result<Scenario> {
    let mut text =
        String::from("[controller]\nservice = { law = \"gamma\", mean = \"100us\", scv = 0.5 }\ninstall = \"path\"\n");
    for number in 0..switches {
        let (high, low) = (number / 200, number % 200 + 1);
        let _ = write!(
            text,
            "[[switch]]\nname = \"s{number}\"\n[switch.timing]\ndata = {{ law = \"constant\", mean = \"3us\", per_byte = \"1ns\" }}\n\
             packet_in = \"50us\"\npacket_out = \"60us\"\n\
             [[host]]\nname = \"h{number}\"\nswitch = \"s{number}\"\nip = \"10.0.{high}.{low}/16\"\nrate = \"1Gbit/s\"\n"
        );
        if number > 0 {
            let above = (number - 1) / BRANCHES;
            let _ =
                write!(text, "[[link]]\nends = [\"s{above}\", \"s{number}\"]\nrate = \"10Gbit/s\"\ndelay = \"20us\"\n");
        }
    }
    for from in 0..switches {
        let to = (from + switches / 2) % switches;
        let _ = write!(
            text,
            "[[traffic]]\nkind = \"udp\"\nfrom = \"h{from}\"\nto = \"h{to}\"\nrate = 1000\narrival = \"poisson\"\nsizes = \"imix\"\n\
             new_flows = 0.02\n"
        );
    }
    text += "[simulate]\nduration = \"1s\"\n";
    Scenario::parse(&text, "tree.toml").context("the tree of switches")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_made_in_all_sizes() {
        for switches in [2, 3, 100, 200] {
            let scenario = tree(switches).unwrap();
            assert_eq!((scenario.switches.len(), scenario.traffic.len()), (switches, switches));
        }
    }
}
