//! The secret that processes share, and the proof that a process knows it.
//!
//! Secret and a transcript -> a proof: HMAC-SHA-256 of a label and the transcript, keyed with the secret. The
//! transcript has a fresh nonce of each side, and the label names the side that proves: a proof is valid for
//! one connection and one direction.
//!
//! References: H. Krawczyk, M. Bellare, R. Canetti, *HMAC: Keyed-Hashing for Message Authentication*, RFC
//! 2104 (1997); the golden value is case 2 of RFC 4231.
//!
//! It authenticates the start of a connection. Later traffic is neither encrypted nor authenticated: an
//! attacker on the network can change it. Without a secret the key is empty, and a proof shows only that the
//! other side speaks this protocol.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::Sha256;

/// Bytes of a proof, and of a nonce.
pub(super) const PROOF_BYTES: usize = 32;

/// The secret of the processes of one run. Empty: none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// From the content of a file or an environment variable, without the end of the line.
    pub fn new(text: &[u8]) -> Self {
        Self(text.trim_ascii_end().to_vec())
    }

    /// The proof for a transcript.
    pub(super) fn proof(&self, label: &str, transcript: &[u8]) -> [u8; PROOF_BYTES] {
        self.mac(label, transcript).finalize().into_bytes().into()
    }

    /// Whether this is the proof for a transcript. Compares in constant time.
    pub(super) fn verifies(&self, label: &str, transcript: &[u8], proof: &[u8]) -> bool {
        self.mac(label, transcript).verify_slice(proof).is_ok()
    }

    fn mac(&self, label: &str, transcript: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.chain_update(label).chain_update(transcript)
    }
}

/// Random bytes from the operating system, different in each call.
pub(super) fn nonce() -> Option<[u8; PROOF_BYTES]> {
    let mut bytes = [0; PROOF_BYTES];
    OsRng.try_fill_bytes(&mut bytes).ok()?;
    Some(bytes)
}

/// Does not show the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "Secret(none)" } else { "Secret(…)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_hmac_sha_256() {
        let proof = Secret::new(b"Jefe\r\n").proof("what do ya ", b"want for nothing?");
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn only_the_same_secret_label_and_transcript_verify() {
        let secret = Secret::new(b"a");
        let proof = secret.proof("x", b"t");
        assert!(secret.verifies("x", b"t", &proof));
        let wrong = [
            Secret::new(b"b").verifies("x", b"t", &proof),
            Secret::default().verifies("x", b"t", &proof),
            secret.verifies("y", b"t", &proof),
            secret.verifies("x", b"u", &proof),
            secret.verifies("x", b"t", &proof[1..]),
            secret.verifies("x", b"t", &[]),
        ];
        assert_eq!(wrong, [false; 6]);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
