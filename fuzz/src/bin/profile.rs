//! Reads text as a profile file: it is rejected, or the profile is unchanged by writing and reading it again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_fuzz::bounded;
use weir_profile::{Profile, differences, figures};

fuzz_target!(|input: &[u8]| {
    let Ok(written) = std::str::from_utf8(input) else { return };
    bounded(input, || {
        let Ok(profile) = Profile::parse(written, "fuzz.toml") else { return };
        let told = profile.to_toml();
        let again = Profile::parse(&told, "fuzz.toml").unwrap_or_else(|error| panic!("{error}\n{told}"));
        // Times are rounded when written; all else is unchanged.
        let apart = differences(&profile, &again);
        let apart: Vec<_> = apart.iter().filter(|one| one.relative.is_none_or(|part| part.abs() > 1e-5)).collect();
        assert!(apart.is_empty(), "{apart:?}\n{told}");
        assert_eq!(figures(&profile).len(), figures(&again).len());
        assert_eq!(profile.evidence.len(), again.evidence.len(), "{told}");
    });
});
