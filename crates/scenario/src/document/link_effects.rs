//! Settings of a link's effects on frames, as written in links, hosts and topologies.
use serde::Deserialize;
use toml::Spanned;
use weir_traffic::impair::JitterLaw;
use weir_units::{Bps, ByteSize, TimeSpan};

/// Effects of a link on frames, as written.
#[derive(Clone, Default)]
pub(crate) struct LinkEffectsToml {
    pub(crate) rate: Option<Bps>,
    pub(crate) delay: Option<Spanned<TimeSpan>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) jitter: Option<Spanned<TimeSpan>>,
    pub(crate) jitter_law: Option<Spanned<JitterLaw>>,
    pub(crate) reorder: Option<Spanned<bool>>,
    pub(crate) loss: Option<Spanned<ShareToml>>,
    pub(crate) loss_burst: Option<Spanned<f64>>,
}

/// Share as a number or in per cent: `0.015` or `"1.5%"`.
#[derive(Deserialize, Clone, Copy)]
#[serde(try_from = "NumberOrPercent")]
pub(crate) struct ShareToml(pub(crate) f64);

#[derive(Deserialize)]
#[serde(untagged, expecting = "found another kind of value, expected a share such as 0.015 or `1.5%`")]
enum NumberOrPercent {
    Number(f64),
    Text(String),
}

impl TryFrom<NumberOrPercent> for ShareToml {
    type Error = String;

    fn try_from(written: NumberOrPercent) -> Result<ShareToml, String> {
        let text = match written {
            NumberOrPercent::Number(number) => return Ok(ShareToml(number)),
            NumberOrPercent::Text(text) => text,
        };
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        percent
            .map(|percent| ShareToml(percent / 100.0))
            .ok_or_else(|| format!("found `{text}`, expected a share such as 0.015 or `1.5%`"))
    }
}

/// Section of the file that has the fields of [`LinkEffectsToml`] among its own.
pub(crate) trait LinkSectionToml: Sized {
    /// Type of the section's first field.
    type First;

    /// Returns a section with nothing but its first field.
    fn only(first: Self::First) -> Self;

    /// Returns the settings for its link.
    fn line(&self) -> LinkEffectsToml;

    /// Replaces the settings for its link.
    fn set_line(&mut self, line: LinkEffectsToml);

    /// Fills in settings that the section leaves out.
    fn fill_in(&mut self, line: LinkEffectsToml) {
        self.set_line(self.line().or(line));
    }
}

impl LinkEffectsToml {
    /// Returns these settings, those left out taken from `usual`.
    fn or(self, usual: LinkEffectsToml) -> LinkEffectsToml {
        let LinkEffectsToml { rate, delay, buffer, jitter, jitter_law, reorder, loss, loss_burst } = usual;
        let (has_jitter, has_loss) = (self.jitter.is_some(), self.loss.is_some());
        LinkEffectsToml {
            rate: self.rate.or(rate),
            // A buffer without any rate is refused by the check.
            buffer: self.buffer.or(buffer),
            delay: self.delay.or(delay),
            jitter_law: if has_jitter { self.jitter_law } else { self.jitter_law.or(jitter_law) },
            reorder: if has_jitter { self.reorder } else { self.reorder.or(reorder) },
            jitter: self.jitter.or(jitter),
            loss_burst: if has_loss { self.loss_burst } else { self.loss_burst.or(loss_burst) },
            loss: self.loss.or(loss),
        }
    }
}

/// Declares a section with the fields of [`LinkEffectsToml`] where `..LinkEffectsToml` stands. Serde's flattening
/// would lose the places of values in the file.
macro_rules! section_of_link {
    (
        $(#[$about:meta])*
        pub(crate) struct $name:ident {
            pub(crate) $first:ident: $first_type:ty,
            $($(#[$before_about:meta])* pub(crate) $before:ident: $before_type:ty,)*
            ..LinkEffectsToml,
            $($(#[$after_about:meta])* pub(crate) $after:ident: $after_type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            pub(crate) $first: $first_type,
            $($(#[$before_about])* pub(crate) $before: $before_type,)*
            pub(crate) rate: Option<weir_units::Bps>,
            pub(crate) delay: Option<toml::Spanned<weir_units::TimeSpan>>,
            pub(crate) buffer: Option<toml::Spanned<weir_units::ByteSize>>,
            pub(crate) jitter: Option<toml::Spanned<weir_units::TimeSpan>>,
            pub(crate) jitter_law: Option<toml::Spanned<weir_traffic::impair::JitterLaw>>,
            pub(crate) reorder: Option<toml::Spanned<bool>>,
            pub(crate) loss: Option<toml::Spanned<$crate::document::ShareToml>>,
            pub(crate) loss_burst: Option<toml::Spanned<f64>>,
            $($(#[$after_about])* pub(crate) $after: $after_type,)*
        }

        impl $crate::document::LinkSectionToml for $name {
            type First = $first_type;

            fn only($first: Self::First) -> $name {
                $name {
                    $first,
                    $($before: Default::default(),)*
                    rate: None,
                    delay: None,
                    buffer: None,
                    jitter: None,
                    jitter_law: None,
                    reorder: None,
                    loss: None,
                    loss_burst: None,
                    $($after: Default::default(),)*
                }
            }

            fn line(&self) -> $crate::document::LinkEffectsToml {
                $crate::document::LinkEffectsToml {
                    rate: self.rate,
                    delay: self.delay.clone(),
                    buffer: self.buffer.clone(),
                    jitter: self.jitter.clone(),
                    jitter_law: self.jitter_law.clone(),
                    reorder: self.reorder.clone(),
                    loss: self.loss.clone(),
                    loss_burst: self.loss_burst.clone(),
                }
            }

            fn set_line(&mut self, line: $crate::document::LinkEffectsToml) {
                (self.rate, self.delay, self.buffer) = (line.rate, line.delay, line.buffer);
                (self.jitter, self.jitter_law, self.reorder) = (line.jitter, line.jitter_law, line.reorder);
                (self.loss, self.loss_burst) = (line.loss, line.loss_burst);
            }
        }
    };
}

pub(super) use section_of_link;
