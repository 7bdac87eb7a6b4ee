//! Explains TLS and stream errors to operators of either end: which end refused, why, and what to do.
use std::io;
use std::time::Duration;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Returns an explanation of a stream's error, for TLS errors and others.
pub fn explain(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(refused) => describe_error(refused),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "the peer closed the connection".to_owned(),
        None => error.to_string(),
    }
}

/// Returns an explanation of a TLS error.
fn describe_error(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(problem) => format!("refused: {}", certificate(problem)),
        Error::NoCertificatesPresented => {
            "refused: the peer shows no certificate; give it a private key and a certificate".to_owned()
        }
        Error::InvalidMessage(InvalidMessage::InvalidContentType)
        | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => {
            "the peer does not speak TLS; use ssl: and pssl: at both ends, or tcp: and ptcp: at both".to_owned()
        }
        Error::AlertReceived(alert) => refused_by_peer(*alert),
        Error::PeerIncompatible(problem) => format!("no TLS that both ends speak: {problem:?}"),
        other => format!("TLS: {other}"),
    }
}

/// Returns what is wrong with a certificate.
pub(crate) fn certificate(problem: &CertificateError) -> String {
    match problem {
        // A bad signature occurs if the CA was made anew under its old name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the peer's certificate is not signed by the CA that this end was given (--ca-cert)".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let since = time.as_secs().saturating_sub(not_after.as_secs());
            format!("the certificate expired {} ago", days(since))
        }
        CertificateError::Expired => "the certificate has expired".to_owned(),
        CertificateError::NotValidYetContext { time, not_before } => {
            let until = not_before.as_secs().saturating_sub(time.as_secs());
            format!("the certificate is valid only in {}; is the clock right?", days(until))
        }
        CertificateError::NotValidYet => "the certificate is not valid yet; is the clock right?".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the peer's certificate is for {}, not for {}",
            if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") },
            expected.to_str()
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the peer's certificate is for another purpose (extended key usage)".to_owned()
        }
        CertificateError::BadEncoding => "the certificate is damaged".to_owned(),
        other => format!("the peer's certificate: {other}"),
    }
}

/// Returns an explanation of an alert by which the peer refused this end (RFC 8446, 6.2).
fn refused_by_peer(alert: AlertDescription) -> String {
    let reason = match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "it is not signed by the CA that the peer was given"
        }
        AlertDescription::CertificateExpired => "it has expired, or is not valid yet, by the peer's clock",
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => "there is none",
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => "it does not accept it",
        AlertDescription::CertificateRevoked => "it is revoked",
        other => return format!("the peer ended TLS: {other:?}"),
    };
    format!("the peer refused this end's certificate: {reason}")
}

fn days(seconds: u64) -> String {
    let span = Duration::from_secs(seconds);
    match seconds {
        0..3600 => format!("{} s", span.as_secs()),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
