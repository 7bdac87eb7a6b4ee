//! Compiles the edits of a flow entry once, for applying them to many packets. A recipe reads the packet's layers and
//! writes its bytes, but does not update the flow key: it is for edits after which the key is no longer needed.
//!
//! The result equals that of the single edits, in an order with the same effect: first the addresses, then the TTL,
//! then the others in their order. Edits that may fail, or after which the headers must be parsed again, are not
//! compiled ([`Recipe`]'s methods refuse them) or, if they fail only for a few packets, are left to the single edits
//! for these ([`Recipe::fits`]).
use super::set_field;
use crate::frame::MAX_FRAME;
use crate::parse::{MAX_VLAN_TAGS, NetworkProtocol};
use crate::{Field, Frame, FrameBody, Layers};

/// Length in bytes of both Ethernet addresses.
const ADDRESSES: usize = 12;
/// Length in bytes of a VLAN tag.
const TAG: u16 = 4;
/// Maximum number of tags that one recipe pushes. Flow entries that push more use single edits.
const MAX_PUSHES: u8 = 4;
/// Maximum number of TTL decrements in one recipe.
const MAX_HOPS: u8 = 16;

/// Compiled edits. An empty recipe changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Recipe {
    addresses: Option<MacRewrite>,
    /// Number to subtract from the TTL.
    hops: u8,
    pushes: u8,
    /// True if tags are pushed or popped.
    retags: bool,
    edits: Vec<HeaderEdit>,
}

/// New bits of the Ethernet addresses, in native byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MacRewrite {
    keep: (u64, u32),
    set: (u64, u32),
}

/// New bits of a tag's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TciRewrite {
    keep: u16,
    set: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HeaderEdit {
    Push(u16, TciRewrite),
    Pop,
    Tag(TciRewrite),
    Set(Field, u128),
}

impl Recipe {
    /// Adds a set-field. Returns false if a recipe cannot do it: fields that change which headers the packet has, or
    /// that are not in its bytes.
    #[must_use]
    pub fn set(&mut self, field: Field, value: u128) -> bool {
        use Field::{EthDst, EthSrc, EthType, Icmpv6Code, Icmpv6Type, IpProto, NshFlags, NshTtl, VlanPcp, VlanVid};
        match field {
            EthDst => self.set_address(0, value),
            EthSrc => self.set_address(6, value),
            VlanVid => self.set_tag(value & 0xfff, 0xfff),
            VlanPcp => self.set_tag((value & 7) << 13, 0xe000),
            // These fields change the meaning of the bytes that follow.
            EthType | IpProto | Icmpv6Type | Icmpv6Code | NshFlags | NshTtl => return false,
            _ if !field.is_settable() || field.is_pipeline() => return false,
            _ => self.edits.push(HeaderEdit::Set(field, value)),
        }
        true
    }

    /// Adds a push of a VLAN tag. Returns false if the recipe has too many.
    #[must_use]
    pub fn push_vlan(&mut self, tpid: u16) -> bool {
        let may = self.pushes < MAX_PUSHES;
        if may {
            self.pushes += 1;
            self.retags = true;
            self.edits.push(HeaderEdit::Push(tpid, TciRewrite { keep: u16::MAX, set: 0 }));
        }
        may
    }

    /// Adds a pop of the outermost VLAN tag.
    #[must_use]
    pub fn pop_vlan(&mut self) -> bool {
        self.retags = true;
        self.edits.push(HeaderEdit::Pop);
        true
    }

    /// Adds a decrement of the IPv4 TTL or IPv6 hop limit. Returns false if the recipe has too many.
    #[must_use]
    pub fn dec_nw_ttl(&mut self) -> bool {
        let may = self.hops < MAX_HOPS;
        self.hops += u8::from(may);
        may
    }

    /// Returns true if the recipe can be applied to a packet: no edit would fail, and the packet does not get more
    /// tags than the parser reads. Otherwise, the single edits report the error.
    #[inline]
    pub fn fits(&self, frame: &FrameBody, layers: &Layers) -> bool {
        let ttl = match layers.network {
            Some((NetworkProtocol::Ipv4, at)) if self.hops > 0 => frame.bytes().get(usize::from(at) + 8),
            Some((NetworkProtocol::Ipv6, at)) if self.hops > 0 => frame.bytes().get(usize::from(at) + 7),
            _ => None,
        };
        let lives = ttl.is_none_or(|ttl| *ttl > self.hops);
        lives && (!self.retags || self.takes_tags(frame, layers))
    }

    /// Returns true if the frame has room for the tags.
    #[inline]
    fn takes_tags(&self, frame: &FrameBody, layers: &Layers) -> bool {
        let pushed = usize::from(self.pushes) * usize::from(TAG);
        layers.vlan_tags + self.pushes < MAX_VLAN_TAGS && frame.len() + pushed <= MAX_FRAME
    }

    /// Applies the edits to a packet. The recipe must [fit](Recipe::fits), and the packet must start with an Ethernet
    /// header.
    #[inline]
    pub fn apply(&self, frame: &mut Frame, layers: &Layers) {
        if let Some(addresses) = &self.addresses {
            addresses.write(frame);
        }
        if self.hops > 0 {
            subtract_ttl(frame, layers, self.hops);
        }
        if !self.edits.is_empty() {
            run(&self.edits, frame, *layers);
        }
    }

    fn set_address(&mut self, at: usize, value: u128) {
        let keep_all = MacRewrite { keep: (u64::MAX, u32::MAX), set: (0, 0) };
        self.addresses.get_or_insert(keep_all).replace(at, &value.to_be_bytes()[10..]);
    }

    /// Sets bits of the outermost tag. If the last step is a push, changes the pushed tag.
    fn set_tag(&mut self, bits: u128, mask: u16) {
        let bits = u16::try_from(bits).unwrap_or(0) & mask;
        match self.edits.last_mut() {
            Some(HeaderEdit::Push(_, tci) | HeaderEdit::Tag(tci)) => {
                *tci = TciRewrite { keep: tci.keep & !mask, set: tci.set & !mask | bits };
            }
            _ => self.edits.push(HeaderEdit::Tag(TciRewrite { keep: !mask, set: bits })),
        }
    }
}

impl MacRewrite {
    /// Sets the address bytes from offset `at` on.
    fn replace(&mut self, at: usize, bytes: &[u8]) {
        let (mut keep, mut set) = (joined(self.keep), joined(self.set));
        for (place, byte) in bytes.iter().enumerate().map(|(offset, byte)| (at + offset, byte)) {
            (keep[place], set[place]) = (0, *byte);
        }
        (self.keep, self.set) = (parted(keep), parted(set));
    }

    #[inline]
    fn write(&self, frame: &mut FrameBody) {
        let Some(place) = frame.bytes_mut().first_chunk_mut::<ADDRESSES>() else { return };
        let (first, last) = parted(*place);
        let (keep, set) = (self.keep, self.set);
        *place = joined((first & keep.0 | set.0, last & keep.1 | set.1));
    }
}

#[inline]
fn parted(bytes: [u8; ADDRESSES]) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, last @ ..] = bytes;
    (u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u32::from_ne_bytes(last))
}

#[inline]
fn joined((first, last): (u64, u32)) -> [u8; ADDRESSES] {
    let ([a, b, c, d, e, f, g, h], [i, j, k, l]) = (first.to_ne_bytes(), last.to_ne_bytes());
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

impl TciRewrite {
    #[inline]
    fn of(self, before: u16) -> [u8; 2] {
        (before & self.keep | self.set).to_be_bytes()
    }
}

/// Subtracts `hops` from the TTL, which must be larger.
#[inline]
fn subtract_ttl(frame: &mut FrameBody, layers: &Layers, hops: u8) {
    match layers.network {
        Some((NetworkProtocol::Ipv4, at)) => {
            let header = frame.bytes_mut().get_mut(usize::from(at)..).and_then(|header| header.first_chunk_mut::<20>());
            if let Some([_, _, _, _, _, _, _, _, ttl, _, high, low, ..]) = header {
                *ttl = ttl.wrapping_sub(hops);
                [*high, *low] = less_hops(u16::from_be_bytes([*high, *low]), hops).to_be_bytes();
            }
        }
        Some((NetworkProtocol::Ipv6, at)) => {
            if let Some(limit) = frame.bytes_mut().get_mut(usize::from(at) + 7) {
                *limit = limit.wrapping_sub(hops);
            }
        }
        _ => {}
    }
}

/// Returns an IPv4 header's checksum after its TTL, the high byte of a 16-bit number, decreased by `hops` (RFC 1624,
/// equation 3).
#[inline]
fn less_hops(checksum: u16, hops: u8) -> u16 {
    // For each hop, !m + m' is a constant, independent of the TTL. The 32-bit sum is small enough for two folds.
    let sum = u32::from(!checksum) + u32::from(hops) * u32::from(!0x0100_u16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let [_, _, high, low] = (!(sum + (sum >> 16))).to_be_bytes();
    u16::from_be_bytes([high, low])
}

fn run(steps: &[HeaderEdit], frame: &mut Frame, mut layers: Layers) {
    for step in steps {
        match *step {
            HeaderEdit::Push(tpid, tci) => {
                let before = if layers.vlan_tags > 0 { outermost(frame) } else { 0 };
                let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.of(before));
                // [`Recipe::fits`] checked that there is room.
                if frame.push_tag([a, b, c, d]).is_ok() {
                    shift(&mut layers, 1, |at| at + TAG);
                }
            }
            HeaderEdit::Pop if layers.vlan_tags > 0 => {
                frame.pop_tag();
                shift(&mut layers, -1, |at| at - TAG);
            }
            HeaderEdit::Tag(tci) if layers.vlan_tags > 0 => {
                let tag = tci.of(outermost(frame));
                if let Some(place) = frame.bytes_mut().get_mut(14..16) {
                    place.copy_from_slice(&tag);
                }
            }
            HeaderEdit::Pop | HeaderEdit::Tag(_) => {}
            HeaderEdit::Set(field, value) => {
                set_field(frame, &layers, field, value);
            }
        }
    }
}

/// Returns the content of the outermost tag.
#[inline]
fn outermost(frame: &FrameBody) -> u16 {
    frame.bytes().get(14..16).map_or(0, |tag| u16::from_be_bytes([tag[0], tag[1]]))
}

/// Moves the offsets of the headers behind the tags.
#[inline]
fn shift(layers: &mut Layers, tags: i8, by: impl Fn(u16) -> u16) {
    layers.vlan_tags = layers.vlan_tags.wrapping_add_signed(tags);
    layers.mpls = layers.mpls.map(&by);
    layers.network = layers.network.map(|(kind, at)| (kind, by(at)));
    layers.transport = layers.transport.map(|(kind, at)| (kind, by(at)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{EditError, dec_nw_ttl, pop_vlan, push_vlan};
    use crate::field::VLAN_PRESENT;
    use crate::frame::PartialChecksum;
    use crate::test_support::any_craft;
    use crate::{ParsedHeaders, PortNo};
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy)]
    enum Single {
        Set(Field, u128),
        Push(u16),
        Pop,
        DecTtl,
    }

    fn single() -> impl Strategy<Value = Single> {
        let settable: Vec<Field> = Field::ALL.into_iter().filter(|field| field.is_settable()).collect();
        let set = |fields: Vec<Field>| {
            (prop::sample::select(fields), any::<u128>())
                .prop_map(|(field, value)| Single::Set(field, value & field.all_ones()))
        };
        prop_oneof![
            2 => set(settable),
            3 => set(vec![Field::EthDst, Field::EthSrc, Field::VlanVid, Field::VlanPcp, Field::Ipv4Dst, Field::UdpSrc]),
            2 => prop::sample::select(vec![0x8100, 0x88a8]).prop_map(Single::Push),
            2 => Just(Single::Pop),
            2 => Just(Single::DecTtl),
        ]
    }

    /// Compiles the edits that a recipe can do; returns the recipe and these edits.
    fn compiled(singles: &[Single]) -> (Recipe, Vec<Single>) {
        let mut recipe = Recipe::default();
        let mut add = |single: &Single| match *single {
            Single::Set(field, value) => recipe.set(field, value),
            Single::Push(tpid) => recipe.push_vlan(tpid),
            Single::Pop => recipe.pop_vlan(),
            Single::DecTtl => recipe.dec_nw_ttl(),
        };
        let done = singles.iter().copied().filter(|single| add(single)).collect();
        (recipe, done)
    }

    /// Applies one edit after the other, parsing the frame before each.
    fn one_by_one(singles: &[Single], frame: &mut Frame) -> Result<(), EditError> {
        for single in singles {
            let layers = ParsedHeaders::of(frame, PortNo(1)).unwrap().layers;
            match *single {
                Single::Set(field, value) => drop(set_field(frame, &layers, field, value)),
                Single::Push(tpid) => drop(push_vlan(frame, &layers, tpid)?),
                Single::Pop => drop(pop_vlan(frame, &layers)),
                Single::DecTtl => drop(dec_nw_ttl(frame, &layers)?),
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_recipe_does_what_its_edits_do(
            craft in any_craft(), singles in proptest::collection::vec(single(), 0..8),
            damage in proptest::option::of((0..80_usize, any::<u8>())), cut in proptest::option::of(14..90_usize), is_partial: bool
        ) {
            let mut bytes = craft.build();
            if let Some((at, byte)) = damage && at < bytes.len() {
                bytes[at] = byte;
            }
            bytes.truncate(cut.unwrap_or(usize::MAX));
            let mut frame = Frame::from_bytes(&bytes);
            let layers = ParsedHeaders::of(&frame, PortNo(1)).unwrap().layers;
            if is_partial && let Some((_, start)) = layers.transport {
                frame.offload.checksum = Some(PartialChecksum { start, offset: 16 });
            }
            let (recipe, singles) = compiled(&singles);
            let mut expected = frame.clone();
            let done = one_by_one(&singles, &mut expected);
            if recipe.fits(&frame, &layers) {
                recipe.apply(&mut frame, &layers);
                prop_assert_eq!(done, Ok(()));
                prop_assert_eq!((frame.bytes(), frame.offload), (expected.bytes(), expected.offload));
            } else {
                let many_tags = layers.vlan_tags + recipe.pushes >= MAX_VLAN_TAGS;
                prop_assert!(done == Err(EditError::TtlExpired) || many_tags, "{done:?} {layers:?}");
            }
        }
    }

    #[test]
    fn checksums_are_those_of_single_hops() {
        for checksum in [0, 1, 0x00ff, 0x0100, 0x0101, 0x1234, 0xfeff, 0xff00, 0xfffe, 0xffff] {
            for hops in 1..=MAX_HOPS {
                let by_one = (0..hops)
                    .fold(checksum, |sum, hop| crate::checksum::updated(sum, &[200 - hop, 6], &[199 - hop, 6]));
                assert_eq!(less_hops(checksum, hops), by_one, "{checksum:x} {hops}");
            }
        }
    }

    #[test]
    fn what_a_recipe_cannot_hold_is_refused() {
        let mut recipe = Recipe::default();
        assert!(!recipe.set(Field::IpProto, 6) && !recipe.set(Field::Metadata, 6) && !recipe.set(Field::TunnelId, 6));
        assert_eq!(recipe, Recipe::default());
        assert_eq!((0..100).filter(|_| recipe.push_vlan(0x8100)).count(), usize::from(MAX_PUSHES));
        assert_eq!((0..100).filter(|_| recipe.dec_nw_ttl()).count(), usize::from(MAX_HOPS));
    }

    #[test]
    fn the_presence_of_a_tag_is_not_a_bit_of_it() {
        let mut recipe = Recipe::default();
        assert!(recipe.push_vlan(0x8100) && recipe.set(Field::VlanVid, u128::from(VLAN_PRESENT | 5)));
        let mut frame = Frame::from_bytes(&[2; 60]);
        let layers = ParsedHeaders::of(&frame, PortNo(1)).unwrap().layers;
        recipe.apply(&mut frame, &layers);
        assert_eq!(frame.bytes()[12..16], [0x81, 0, 0, 5]);
    }
}
