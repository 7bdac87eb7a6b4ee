//! Settings of a link's effects on frames, as written in links, hosts and topologies.
use super::{HostToml, LinkToml, TopologyToml};
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

/// Implements access to the fields of a [`LinkEffectsToml`], which links, hosts and topologies have in addition to
/// their own.
macro_rules! line_of {
    ($($type:ty),*) => {$(
        impl $type {
            /// Returns the settings for its link.
            pub(crate) fn line(&self) -> LinkEffectsToml {
                LinkEffectsToml {
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
        }
    )*};
}
line_of!(LinkToml, HostToml, TopologyToml);

/// Implements filling in settings that a link or host leaves out.
macro_rules! fill_in {
    ($($type:ty),*) => {$(
        impl $type {
            pub(crate) fn fill_in(&mut self, line: LinkEffectsToml) {
                let LinkEffectsToml { rate, delay, buffer, jitter, jitter_law, reorder, loss, loss_burst } = line;
                self.rate = self.rate.or(rate);
                // A buffer without any rate is refused by the check.
                self.buffer = self.buffer.take().or(buffer);
                self.delay = self.delay.take().or(delay);
                if self.jitter.is_none() {
                    (self.jitter, self.jitter_law, self.reorder) = (jitter, self.jitter_law.take().or(jitter_law), self.reorder.take().or(reorder));
                }
                if self.loss.is_none() {
                    (self.loss, self.loss_burst) = (loss, self.loss_burst.take().or(loss_burst));
                }
            }
        }
    )*};
}
fill_in!(LinkToml, HostToml);
