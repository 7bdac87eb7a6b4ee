//! Counters of a router.

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a router since it was added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub(super) struct RouterCounts {
            $($(#[$doc])* pub(super) $name: u64,)*
        }

        impl RouterCounts {
            /// Returns the counters by name.
            pub(super) fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            /// Adds those of another router.
            pub(super) fn add(&mut self, other: &RouterCounts) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Answers to ARP requests.
    arp_replies,
    /// Answers to neighbour solicitations.
    advertisements,
    /// Answers to echo requests.
    echo_replies,
    /// Packets that the controller sent to their next hop.
    routed_at_controller,
    /// Questions for Ethernet addresses.
    questions,
    /// Errors of ICMP that were sent.
    icmp_errors,
    /// Errors of ICMP beyond the limit of a second.
    icmp_errors_limited,
    /// Packets of hosts that use an address of the router.
    claims,
    /// Neighbours that found no room.
    neighbours_full,
    /// Packets dropped because a filter denies them. Most are dropped by the switch, which counts them itself.
    drop_denied,
    /// Packets dropped because of a blackhole.
    drop_blackhole,
    /// Packets dropped because their TTL has expired.
    drop_expired,
    /// Packets dropped without a route.
    drop_no_route,
    /// Packets dropped because they are larger than the MTU.
    drop_too_big,
    /// Packets dropped because their next hop does not answer.
    drop_unreachable,
    /// Packets dropped because too many wait.
    drop_queue_full,
    /// Packets dropped that were for the router and no echo requests.
    drop_to_router,
    /// Flow-mods that a switch refused.
    refused,
    /// Entries that a switch did not have as wanted, although it had them before or should have taken them.
    repaired,
}
