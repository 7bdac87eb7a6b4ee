//! Reasons why the datapath drops packets, each declared once with its counter and its text.
use serde::Serialize;

/// Declares the reasons: the enum, the struct of counters, and the texts for display.
macro_rules! reasons {
    ($($variant:ident $field:ident $text:literal,)*) => {
        /// Reason why a packet, or one of its copies, was dropped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "`text` says it")]
        pub enum DropReason { $($variant,)* }

        impl DropReason {
            /// Returns the reason as text.
            pub const fn text(self) -> &'static str {
                match self { $(DropReason::$variant => $text,)* }
            }
        }

        /// Number of packets dropped in the datapath, by reason. A packet sent to several ports counts once for each
        /// port that it does not reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        #[allow(missing_docs, reason = "each counts what `DropReason::text` says")]
        pub struct Drops { $(pub $field: u64,)* }

        impl Drops {
            /// Names of all counters.
            pub const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// Adds `packets` dropped for `reason`.
            pub fn count(&mut self, reason: DropReason, packets: u64) {
                match reason { $(DropReason::$variant => self.$field += packets,)* }
            }

            /// Returns the number of packets dropped for any reason.
            pub fn total(&self) -> u64 {
                0 $(+ self.$field)*
            }

            /// Returns the counters that are not zero, with their reasons.
            pub fn counted(&self) -> Vec<(DropReason, u64)> {
                let all = [$((DropReason::$variant, self.$field),)*];
                all.into_iter().filter(|(_, count)| *count > 0).collect()
            }
        }
    };
}

reasons! {
    TooShort too_short "shorter than an Ethernet header",
    TableMiss table_miss "no entry matched",
    NoAction no_action "the entries that matched send it nowhere",
    TtlExpired ttl_expired "its TTL is used up",
    PortDown port_down "the port is down or has no link",
    NoRecv no_recv "the port's configuration drops what it receives",
    NoFwd no_fwd "the port's configuration drops what is sent to it",
    UnknownPort unknown_port "no such port",
    NoController no_controller "no controller takes it",
    NoPacketIn no_packet_in "the input port's configuration keeps its packets from controllers",
    InPortOnly in_port_only "it would leave only by the port it came in on",
    TooLong too_long "pushing headers would make it too long",
    Fragment fragment "the switch is configured to drop IP fragments",
    Reserved reserved "its destination is reserved for the link and not forwarded by NORMAL",
    NoLiveBucket no_live_bucket "its group has no live bucket",
    TooManyBuckets too_many_buckets "its groups have more buckets than one packet may run through",
    UnknownGroup unknown_group "no such group",
    Meter meter "a band of its flow entry's meter drops it",
    SlowPathMeter slow_path_meter "the slow path's meter keeps it from controllers",
    ControllerMeter controller_meter "the controller meter keeps it from controllers",
    PacketInRate packet_in_rate "packet-ins for every controller that wants it are at their rate limit",
    PacketType packet_type "an action is for packets that begin with another header",
    NotEthernet not_ethernet "it has no Ethernet header, and the port takes only frames that have one",
    Resubmits resubmits "it was resubmitted too often or too deep",
    TooManyParked too_many_parked "too many packets of one burst are for controllers or NORMAL",
    LearnedTooMuch learned_too_much "too many flow entries are learned at once",
    StackFull stack_full "its stack is full",
    BadOffload bad_offload "its offload does not fit its headers",
    ControlCopy control_copy "it is a further copy of a control frame that came in before",
    ControlExcess control_excess "more control frames to be flooded, or more notices, came in on its port than it may have",
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}
