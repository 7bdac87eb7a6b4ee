//! Reads and changes settings of a network interface by ethtool: rate, number of queues, support of departure
//! timestamps, and features that must be off while weir uses the interface.
use crate::interface::KernelInterface;
use crate::notes::{self, FeatureNote};
use crate::sys::PlainData;
use std::io;
use std::sync::Arc;
use weir_units::Bps;

/// Maximum number of features of an interface, in words of 32 bits. Linux has about 64 features today.
const FEATURE_WORDS: usize = 8;
/// Maximum length of a feature's name in bytes, with its zero byte (`ETH_GSTRING_LEN`).
const NAME_LENGTH: usize = 32;
const SPEED_UNKNOWN: u32 = u32::MAX;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETH_SS_FEATURES: u32 = 4;

/// Returns the rate of an interface, if the driver reports one.
pub(crate) fn speed(interface: &KernelInterface) -> Option<Bps> {
    // Without room for link modes the kernel returns only the fixed part, which has all that is needed.
    let mut settings = EthtoolLinkSettings { command: ETHTOOL_GLINKSETTINGS, ..EthtoolLinkSettings::zeroed() };
    interface.ethtool(&mut settings).ok()?;
    if settings.mode_words < 0 {
        // The first answer only says how many words of link modes to expect; the second one has the speed.
        let mode_words = settings.mode_words.checked_neg()?;
        settings = EthtoolLinkSettings { command: ETHTOOL_GLINKSETTINGS, mode_words, ..EthtoolLinkSettings::zeroed() };
        interface.ethtool(&mut settings).ok()?;
    }
    let known = settings.speed != 0 && settings.speed != SPEED_UNKNOWN;
    known.then(|| Bps(u64::from(settings.speed) * 1_000_000))
}

/// Returns the number of receive queues of an interface; 1 if the driver does not report it.
pub(crate) fn receive_queues(interface: &KernelInterface) -> u32 {
    let mut channels = EthtoolChannels { command: ETHTOOL_GCHANNELS, ..EthtoolChannels::zeroed() };
    match interface.ethtool(&mut channels) {
        Ok(()) => (channels.receive + channels.combined).max(1),
        Err(_) => 1,
    }
}

/// Returns true if the interface's driver reports departure times of frames (`ethtool -T`: `software-transmit`).
pub(crate) fn says_departures(interface: &KernelInterface) -> bool {
    let mut info = EthtoolTsInfo { command: ETHTOOL_GET_TS_INFO, ..EthtoolTsInfo::zeroed() };
    interface.ethtool(&mut info).is_ok() && info.stamps & libc::SOF_TIMESTAMPING_TX_SOFTWARE != 0
}

/// Guard that keeps features of an interface switched off until it is dropped, which switches them on again. Features
/// that were off, or that the driver cannot change, stay as they are. Two guards on one interface are not supported:
/// the first one dropped switches the features on again.
///
/// Features that a killed process left switched off count as having been on.
#[derive(Debug)]
pub(crate) struct DisabledFeatures {
    interface: Arc<KernelInterface>,
    features: FeatureBits,
    /// Record of the features on disk, so that they can be switched on again if this process is killed.
    note: Option<FeatureNote>,
}

/// Set of features, one bit each. The running kernel assigns the bit numbers.
type FeatureBits = [u32; FEATURE_WORDS];

impl DisabledFeatures {
    /// Switches off the features in `names` that are on and can be changed. Logs features that stay on.
    pub(crate) fn new(interface: &Arc<KernelInterface>, names: &[&str]) -> io::Result<Self> {
        let named = numbers_of(interface, names)?;
        let state = FeatureState::read(interface)?;
        let adopted = notes::left_off_at(interface);
        let were_on = union(&state.active(), &numbers_of(interface, &adopted.features())?);
        let features = intersection(&named, &intersection(&were_on, &state.available()));
        let note = note(interface, &features)?;
        if note.is_some() {
            adopted.erase();
        }
        set(interface, &features, false)?;
        let guard = DisabledFeatures { interface: Arc::clone(interface), features, note };
        let left = intersection(&named, &FeatureState::read(interface)?.active());
        if left.iter().any(|&word| word != 0) {
            tracing::warn!(
                interface = interface.name(),
                ?names,
                "some features stay on: the driver does not change them"
            );
        }
        Ok(guard)
    }
}

impl Drop for DisabledFeatures {
    fn drop(&mut self) {
        if let Err(error) = set(&self.interface, &self.features, true)
            && self.interface.exists()
        {
            tracing::warn!(interface = self.interface.name(), %error, "cannot restore the interface's features");
            // The note stays, and counts as a note of a killed process when this process ends.
            std::mem::forget(self.note.take());
        }
    }
}

/// Switches on the features in `names`. Names that the kernel does not know are ignored.
///
/// # Errors
/// The system refuses.
pub(crate) fn switch_on(interface: &KernelInterface, names: &[String]) -> io::Result<()> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    set(interface, &numbers_of(interface, &names)?, true)
}

/// Records the features that are about to be switched off in a file under `/run` (see [`FeatureNote`]), so that they
/// can be restored if this process is killed. Returns `None` if there are no features, if the interface's network
/// namespace is unknown, or if the file cannot be written.
fn note(interface: &KernelInterface, features: &FeatureBits) -> io::Result<Option<FeatureNote>> {
    let is_in = |number: usize| features[number / 32] >> (number % 32) & 1 != 0;
    let names = feature_names(interface)?.into_iter().enumerate().filter(|(number, _)| is_in(*number));
    let names: Vec<String> = names.map(|(_, name)| name).collect();
    if names.is_empty() || interface.namespace() == 0 {
        return Ok(None);
    }
    let written = FeatureNote::write(interface, names).inspect_err(|error| {
        tracing::debug!(interface = interface.name(), %error, "no note of the features that are switched off");
    });
    Ok(written.ok())
}

/// Switches features on or off; does nothing for an empty set.
fn set(interface: &KernelInterface, features: &FeatureBits, on: bool) -> io::Result<()> {
    if features.iter().all(|&word| word == 0) {
        return Ok(());
    }
    // The kernel accepts exactly its own number of words, which a read returns.
    let size = FeatureState::read(interface)?.size;
    let mut request = FeatureRequest { command: ETHTOOL_SFEATURES, size, ..FeatureRequest::zeroed() };
    for (block, &word) in request.blocks.iter_mut().zip(features) {
        *block = FeatureRequestBlock { valid: word, requested: if on { word } else { 0 } };
    }
    interface.ethtool(&mut request)
}

/// Returns the set of the features in `names`. Names that the kernel does not know are ignored.
fn numbers_of(interface: &KernelInterface, names: &[&str]) -> io::Result<FeatureBits> {
    let mut features = [0; FEATURE_WORDS];
    for (number, name) in feature_names(interface)?.iter().enumerate() {
        if names.contains(&name.as_str()) {
            features[number / 32] |= 1 << (number % 32);
        }
    }
    Ok(features)
}

/// Returns the names of all features, in the order of their numbers.
fn feature_names(interface: &KernelInterface) -> io::Result<Vec<String>> {
    let mut info =
        EthtoolSsetInfo { command: ETHTOOL_GSSET_INFO, mask: 1 << ETH_SS_FEATURES, ..EthtoolSsetInfo::zeroed() };
    interface.ethtool(&mut info)?;
    let count = usize::try_from(info.count).unwrap_or(usize::MAX);
    if count > FEATURE_WORDS * 32 {
        // The kernel would write more names than the buffer holds.
        return Err(io::Error::other(format!("the kernel has {count} features, more than weir knows of")));
    }
    let mut strings = Box::new(EthtoolStrings {
        command: ETHTOOL_GSTRINGS,
        string_set: ETH_SS_FEATURES,
        length: info.count,
        ..EthtoolStrings::zeroed()
    });
    interface.ethtool(&mut *strings)?;
    let text =
        |bytes: &[u8; NAME_LENGTH]| bytes.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as char).collect();
    Ok(strings.names.iter().take(count).map(text).collect())
}

fn intersection(a: &FeatureBits, b: &FeatureBits) -> FeatureBits {
    std::array::from_fn(|word| a[word] & b[word])
}

fn union(a: &FeatureBits, b: &FeatureBits) -> FeatureBits {
    std::array::from_fn(|word| a[word] | b[word])
}

/// Layout of `struct ethtool_gfeatures`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FeatureState {
    command: u32,
    size: u32,
    blocks: [FeatureStateBlock; FEATURE_WORDS],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct FeatureStateBlock {
    available: u32,
    _requested: u32,
    active: u32,
    _never_changed: u32,
}

impl FeatureState {
    fn read(interface: &KernelInterface) -> io::Result<Self> {
        let size = u32::try_from(FEATURE_WORDS).unwrap_or(0);
        let mut state = FeatureState { command: ETHTOOL_GFEATURES, size, ..FeatureState::zeroed() };
        interface.ethtool(&mut state)?;
        Ok(state)
    }

    fn active(&self) -> FeatureBits {
        self.blocks.map(|block| block.active)
    }

    fn available(&self) -> FeatureBits {
        self.blocks.map(|block| block.available)
    }
}

/// Layout of `struct ethtool_sfeatures`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FeatureRequest {
    command: u32,
    size: u32,
    blocks: [FeatureRequestBlock; FEATURE_WORDS],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct FeatureRequestBlock {
    valid: u32,
    requested: u32,
}

/// `struct ethtool_sset_info` with room for one count.
#[derive(Clone, Copy)]
#[repr(C)]
struct EthtoolSsetInfo {
    command: u32,
    _reserved: u32,
    mask: u64,
    count: u32,
}

/// `struct ethtool_gstrings` with room for the maximum number of features.
#[derive(Clone, Copy)]
#[repr(C)]
struct EthtoolStrings {
    command: u32,
    string_set: u32,
    length: u32,
    names: [[u8; NAME_LENGTH]; FEATURE_WORDS * 32],
}

/// `struct ethtool_link_settings` with room for the link modes that follow it.
#[derive(Clone, Copy)]
#[repr(C)]
struct EthtoolLinkSettings {
    command: u32,
    speed: u32,
    /// Duplex, port, address, negotiation, MDIO, crossing (two).
    _fixed: [u8; 7],
    mode_words: i8,
    _rest: [u8; 4],
    _reserved: [u32; 7],
    /// Three masks of at most 127 words.
    _modes: [u32; 3 * 127],
}

/// Layout of `struct ethtool_channels`.
#[derive(Clone, Copy)]
#[repr(C)]
struct EthtoolChannels {
    command: u32,
    _max: [u32; 4],
    receive: u32,
    _transmit: u32,
    _other: u32,
    combined: u32,
}

/// Layout of `struct ethtool_ts_info`.
#[derive(Clone, Copy)]
#[repr(C)]
struct EthtoolTsInfo {
    command: u32,
    stamps: u32,
    _of_hardware: [u32; 9],
}

// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for EthtoolLinkSettings {}
// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for EthtoolTsInfo {}
// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for EthtoolChannels {}
// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for FeatureState {}
// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for FeatureRequest {}
// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for EthtoolSsetInfo {}
// SAFETY: integers, in the layout of the kernel's structure.
unsafe impl PlainData for EthtoolStrings {}
