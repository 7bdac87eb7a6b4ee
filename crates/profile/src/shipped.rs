//! Embeds the profiles that are shipped with weir.

/// Names and texts of the shipped profiles.
pub const SHIPPED: [(&str, &str); 5] = [
    ("native", include_str!("../shipped/native.toml")),
    ("at-x510", include_str!("../shipped/at-x510.toml")),
    ("two-level-tcam", include_str!("../shipped/two-level-tcam.toml")),
    ("ovs-kernel", include_str!("../shipped/ovs-kernel.toml")),
    ("ofsoftswitch13", include_str!("../shipped/ofsoftswitch13.toml")),
];
