//! Makes pairs of interfaces in this network namespace, for a switch that is measured from outside.
use super::leftovers::delete_devices;
use super::namespaces::{self, ONE_LAB};
use super::programs::{self, ip};
use crate::LabError;
use std::sync::{MutexGuard, PoisonError};

/// Pairs of interfaces, up, on which the kernel sends nothing. They are removed when this is dropped; labs of this
/// process wait until then.
pub struct VethPairSet {
    /// Names of the interfaces; the two of a pair are adjacent.
    devices: Vec<String>,
    _turn: MutexGuard<'static, ()>,
}

impl VethPairSet {
    /// Returns why pairs cannot be made here; `None` if they can.
    pub fn missing() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("pairs of interfaces need root: use sudo".to_owned());
        }
        (!programs::installed("ip")).then(|| "pairs of interfaces need ip: apt-get install iproute2".to_owned())
    }

    /// Makes `count` pairs. Removes leftovers of killed runs first.
    ///
    /// # Errors
    /// The system refuses; nothing is left behind.
    pub fn make(count: usize) -> Result<VethPairSet, LabError> {
        let turn = ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner);
        namespaces::remove_leftovers();
        let pid = std::process::id();
        // Records the names before anything is made, so that on a failure the drop removes what was made.
        let devices: Vec<String> = (0..2 * count).map(|number| format!("weir{pid}p{number}")).collect();
        let pairs = VethPairSet { devices, _turn: turn };
        let lines =
            pairs.devices.chunks(2).map(|ends| format!("link add {} type veth peer name {}\n", ends[0], ends[1]));
        ip(&["-batch", "-"], &lines.collect::<String>())?;
        namespaces::set_up_quiet(&pairs.devices)?;
        Ok(pairs)
    }

    /// Returns the names of the two ends of a pair, counted from 0; empty names if there are fewer pairs.
    pub fn ends(&self, number: usize) -> [&str; 2] {
        [0, 1].map(|end| self.devices.get(2 * number + end).map_or("", String::as_str))
    }
}

impl Drop for VethPairSet {
    fn drop(&mut self) {
        delete_devices(&self.devices).iter().for_each(|problem| tracing::warn!("left behind: {problem}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn pairs_are_there_as_long_as_they_are_wanted() {
        if !weir_testing::root() {
            return;
        }
        assert_eq!(VethPairSet::missing(), None);
        let pairs = VethPairSet::make(2).unwrap();
        let devices = pairs.devices.clone();
        let there = |device: &String| Path::new("/sys/class/net").join(device).exists();
        assert!(devices.len() == 4 && devices.iter().all(there));
        assert_eq!(pairs.ends(1), [devices[2].as_str(), devices[3].as_str()]);
        assert_eq!(pairs.ends(2), [""; 2]);
        drop(pairs);
        assert!(!devices.iter().any(there));
    }
}
