//! Parses meter-mods, such as `meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100`.
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, check_length, number};
use crate::model::MeterId;
use crate::model::meter::{Band, BandKind, MeterCommand, MeterMod, flags};

/// Keys before the bands.
const SETTINGS: [&str; 6] = ["meter", "kbps", "pktps", "burst", "stats", "bands"];
/// Keys of a band.
const BAND: [&str; 4] = ["type", "rate", "burst_size", "prec_level"];

/// Parses a meter-mod with command `command` (`OFPMC_*`) in the syntax of `ovs-ofctl`.
///
/// `meter=` names the meter: a number, `controller`, `slowpath`, or in deletes `all` (the default there). The flags
/// are `kbps` or `pktps` (kbit/s if neither is given), `burst` and `stats`. `bands=` comes last, with a list of
/// bands, which may be empty. Each band starts with `type=drop` or `type=dscp_remark`. `rate=` is in kbit/s or
/// packets/s, `burst_size=` (which sets the flag `burst`) in kbit or packets, `prec_level=` (default 1) in drop
/// precedence levels. Deletes have only a number.
///
/// # Errors
/// The position of the first error, what was found there and what was expected.
///
/// ```
/// use weir_openflow::{model::meter::MeterCommand, text};
/// let meter = text::parse_meter("meter=1 pktps bands=type=drop rate=100", MeterCommand::Add).unwrap();
/// assert_eq!((meter.meter.0, meter.bands[0].rate), (1, 100));
/// let error = text::parse_meter("meter=1,pkts,bands=type=drop,rate=1", MeterCommand::Add).unwrap_err();
/// assert!(error.to_string().ends_with("did you mean `pktps`?"));
/// ```
pub fn parse_meter(text: &str, command: MeterCommand) -> Result<MeterMod, ParseError> {
    check_length(text)?;
    let mut reader = MeterModParser { command, meter: None, flags: 0, bands: Vec::new() };
    let mut scanner = KeyValueScanner::new(text, 0);
    while let Some(item) = scanner.next()? {
        if matches!(item.key, "bands" | "band") {
            reader.parse_bands(&item, scanner.rest_behind(&item))?;
            break;
        }
        reader.parse_setting(&item)?;
    }
    reader.finish(text)
}

/// Parses the meter that a request is about: `meter=1`, `1`, `controller`, or an empty text for all meters.
///
/// # Errors
/// The text, and what was expected.
pub fn parse_meter_id(text: &str) -> Result<MeterId, ParseError> {
    let trimmed = text.trim();
    match trimmed.strip_prefix("meter=").unwrap_or(trimmed) {
        "" => Ok(MeterId::ALL),
        name => id(name).map_err(|expected| ParseError::new(0, text, expected)),
    }
}

fn id(name: &str) -> Result<MeterId, String> {
    match name {
        "all" => Ok(MeterId::ALL),
        "controller" => Ok(MeterId::CONTROLLER),
        "slowpath" => Ok(MeterId::SLOWPATH),
        digits => {
            number::u32(digits).ok().filter(|id| (1..=MeterId::MAX.0).contains(id)).map(MeterId).ok_or_else(|| {
                format!(
                    "a meter: a number from 1 to {:#x}, `controller`, `slowpath`, or `all` where all can be meant",
                    MeterId::MAX.0
                )
            })
        }
    }
}

struct MeterModParser {
    command: MeterCommand,
    meter: Option<MeterId>,
    flags: u16,
    bands: Vec<ParsedBand>,
}

/// A band being parsed.
struct ParsedBand {
    /// Offset of the band in the text, in bytes.
    at: usize,
    kind: BandKind,
    rate: Option<u32>,
    burst_size: Option<u32>,
}

impl MeterModParser {
    fn parse_setting(&mut self, item: &KeyValueItem<'_>) -> Result<(), ParseError> {
        let flag = match item.key {
            "meter" => {
                let meter = id(item.value("a meter's number")?).map_err(|expected| item.wrong(expected))?;
                if meter == MeterId::ALL && self.command != MeterCommand::Delete {
                    return Err(item.wrong("one meter: only deletes can mean all"));
                }
                self.meter = Some(meter);
                return Ok(());
            }
            _ if self.command == MeterCommand::Delete => {
                return Err(ParseError::new(item.at, item.key, "only a meter's number: deletes have nothing else"));
            }
            "kbps" => flags::KBPS,
            "pktps" => flags::PKTPS,
            "burst" => flags::BURST,
            "stats" => flags::STATS,
            _ => return Err(ParseError::unknown(item.at, item.key, "a meter's setting or bands=", SETTINGS)),
        };
        item.alone()?;
        self.flags |= flag;
        if self.flags & flags::KBPS != 0 && self.flags & flags::PKTPS != 0 {
            return Err(ParseError::new(item.at, item.key, "either kbps or pktps"));
        }
        Ok(())
    }

    /// Parses the bands, which extend from `bands=` to the end of the text.
    fn parse_bands(&mut self, bands: &KeyValueItem<'_>, rest: &str) -> Result<(), ParseError> {
        if self.command == MeterCommand::Delete {
            return Err(ParseError::new(bands.at, bands.key, "only a meter's number: deletes have no bands"));
        }
        let mut scanner = KeyValueScanner::new(rest, bands.value_at);
        while let Some(item) = scanner.next()? {
            if item.key == "type" {
                self.bands.push(ParsedBand { at: item.at, kind: kind(&item)?, rate: None, burst_size: None });
            } else {
                self.parse_band_setting(&item)?;
            }
        }
        Ok(())
    }

    fn parse_band_setting(&mut self, item: &KeyValueItem<'_>) -> Result<(), ParseError> {
        let Some(band) = self.bands.last_mut() else {
            return Err(ParseError::unknown(item.at, item.key, "type= first: it begins a band", ["type"]));
        };
        let wrong = |expected: String| item.wrong(expected);
        match (item.key, &mut band.kind) {
            ("rate", _) => band.rate = Some(number::u32(item.value("a rate in kbit/s or packets/s")?).map_err(wrong)?),
            ("burst_size", _) => {
                band.burst_size = Some(number::u32(item.value("a burst in kbit or packets")?).map_err(wrong)?);
            }
            ("prec_level", BandKind::DscpRemark { prec_level }) => {
                *prec_level = number::u8(item.value("a number of steps")?).map_err(wrong)?;
            }
            ("prec_level", _) => {
                return Err(ParseError::new(item.at, item.key, "no prec_level: only dscp_remark has one"));
            }
            _ => return Err(ParseError::unknown(item.at, item.key, "a band's setting", BAND)),
        }
        Ok(())
    }

    fn finish(self, text: &str) -> Result<MeterMod, ParseError> {
        let missing = |what: &str| ParseError::new(text.len(), "", what);
        let meter = match (self.meter, self.command) {
            (Some(meter), _) => meter,
            (None, MeterCommand::Delete) => MeterId::ALL,
            (None, _) => return Err(missing("meter= and a number")),
        };
        let sets_burst = self.bands.iter().any(|band| band.burst_size.is_some());
        let flags = self.flags | if sets_burst { flags::BURST } else { 0 };
        let bands = self.bands.into_iter().map(|band| band.finish(flags)).collect::<Result<_, _>>()?;
        Ok(MeterMod { command: self.command, flags, meter, bands })
    }
}

impl ParsedBand {
    fn finish(self, flags: u16) -> Result<Band, ParseError> {
        let missing = |what: &str| ParseError::new(self.at, "type", format!("a band with {what}"));
        let rate = self.rate.ok_or_else(|| missing("rate="))?;
        // The flag applies to all bands.
        let burst_size = match self.burst_size {
            None if flags & flags::BURST != 0 => return Err(missing("burst_size=, since the meter has bursts")),
            burst_size => burst_size.unwrap_or(0),
        };
        Ok(Band { rate, burst_size, kind: self.kind })
    }
}

fn kind(item: &KeyValueItem<'_>) -> Result<BandKind, ParseError> {
    match item.value("drop or dscp_remark")? {
        "drop" => Ok(BandKind::Drop),
        "dscp_remark" => Ok(BandKind::DscpRemark { prec_level: 1 }),
        _ => Err(item.wrong("drop or dscp_remark")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::format_meter;

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in [
            "meter=1 kbps bands=\ntype=drop rate=1000",
            "meter=4294901760 pktps burst stats bands=\ntype=dscp_remark rate=0 burst_size=7 prec_level=2\ntype=drop rate=9 burst_size=0",
            "meter=controller pktps bands=\ntype=drop rate=100",
            "meter=slowpath kbps bands=\ntype=drop rate=4294967295",
        ] {
            let read = parse_meter(text, MeterCommand::Add).unwrap();
            assert_eq!(format_meter(read.meter, read.flags, &read.bands).trim_end(), text);
        }
        let commas = "meter=1,kbps,band=type=drop,rate=1,burst_size=2,type=dscp_remark,rate=3,burst_size=4";
        let read = parse_meter(commas, MeterCommand::Modify).unwrap();
        assert_eq!(
            (read.flags, read.bands.len(), &read.bands[1].kind),
            (5, 2, &BandKind::DscpRemark { prec_level: 1 })
        );
    }

    #[test]
    fn deletes_name_a_meter_or_none() {
        let of = |text| parse_meter(text, MeterCommand::Delete).map(|read| (read.meter, read.bands.len()));
        assert_eq!(of("meter=7"), Ok((MeterId(7), 0)));
        assert_eq!((of(""), of("meter=all")), (Ok((MeterId::ALL, 0)), Ok((MeterId::ALL, 0))));
        assert!(of("meter=7,kbps").is_err() && of("meter=7,bands=type=drop,rate=1").is_err());
        assert_eq!(parse_meter_id(""), Ok(MeterId::ALL));
        assert_eq!(
            (parse_meter_id("meter=3"), parse_meter_id("controller")),
            (Ok(MeterId(3)), Ok(MeterId::CONTROLLER))
        );
        assert!(parse_meter_id("meter=x").is_err());
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, expected) in [
            ("kbps,bands=type=drop,rate=1", "column 28: found nothing, expected meter= and a number"),
            ("meter=0,kbps", "column 7: found `0`, expected a meter: a number from 1 to"),
            ("meter=all", "column 7: found `all`, expected one meter: only deletes can mean all"),
            ("meter=1,kbps,pktps", "column 14: found `pktps`, expected either kbps or pktps"),
            ("meter=1,burts", "column 9: found `burts`, expected a meter's setting or bands=; did you mean `burst`?"),
            ("meter=1,bands=rate=1", "column 15: found `rate`, expected type= first: it begins a band"),
            ("meter=1,bands=type=drop", "column 15: found `type`, expected a band with rate="),
            ("meter=1,bands=type=drop,rate=x", "column 30: found `x`, expected a number from 0"),
            ("meter=1,bands=type=drop,rate=1,prec_level=1", "column 32: found `prec_level`, expected no prec_level"),
            ("meter=1,bands=type=police,rate=1", "column 20: found `police`, expected drop or dscp_remark"),
            ("meter=1,burst,bands=type=drop,rate=1", "column 21: found `type`, expected a band with burst_size="),
        ] {
            let error = parse_meter(text, MeterCommand::Add).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
