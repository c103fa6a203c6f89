//! Requests of the kernel to a file system that we serve, with what processes inside chose in them: reading one never
//! panics, a name is one component of a path, data is as long as it says, and what is agreed was offered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palisade_fuse::{Handshake, InitFlags, Offer, Operation, Request, Terms};

/// `struct fuse_in_header`.
const HEADER: usize = 40;

fuzz_target!(|message: &[u8]| {
    let request = match Request::parse(message) {
        Ok(request) => request,
        Err(error) => {
            let number = error.unique.map(|unique| unique.0.to_ne_bytes());
            assert!(number.is_none_or(|number| message[8..16] == number), "{error}");
            return;
        }
    };
    assert_eq!(message[..4], u32::try_from(message.len()).expect("it is short").to_ne_bytes());
    assert_eq!(message[8..16], request.unique.0.to_ne_bytes());
    assert!(Request::parse(&message[..message.len() - 1]).is_err());
    match request.operation {
        Operation::Init(offer) => check_handshake(&offer),
        Operation::Lookup { name }
        | Operation::MkNod { name, .. }
        | Operation::MkDir { name, .. }
        | Operation::Unlink { name }
        | Operation::RmDir { name }
        | Operation::Create { name, .. }
        | Operation::Link { new_name: name, .. } => check_name(name),
        Operation::Symlink { name, target } => {
            check_name(name);
            assert!(!target.is_empty() && !target.contains(&0));
        }
        Operation::Rename { name, new_name, .. } => {
            check_name(name);
            check_name(new_name);
        }
        Operation::Write { data, .. } => {
            assert_eq!(message[HEADER + 16..HEADER + 20], length(data));
        }
        Operation::SetXattr { name, value, .. } => {
            assert!(!name.is_empty() && !name.contains(&0));
            assert_eq!(message[HEADER..HEADER + 4], length(value));
        }
        Operation::BatchForget(list) => {
            let count = u32::try_from(list.iter().count()).expect("it is short");
            assert_eq!(message[HEADER..HEADER + 4], count.to_ne_bytes());
        }
        _ => {}
    }
});

fn check_name(name: &[u8]) {
    assert!(!matches!(name, b"" | b"." | b".."));
    assert!(!name.contains(&0) && !name.contains(&b'/'));
}

fn length(data: &[u8]) -> [u8; 4] {
    u32::try_from(data.len()).expect("it is short").to_ne_bytes()
}

fn check_handshake(offer: &Offer) {
    let flags = InitFlags::from_bits_retain(u64::MAX);
    let terms = Terms { flags, max_write: 1 << 20, max_readahead: 1 << 17, max_background: 12 };
    let Ok(Handshake::Agreed(agreement)) = offer.agree(&terms) else { return };
    assert!(offer.flags.contains(agreement.flags) && InitFlags::all().contains(agreement.flags));
    assert!(agreement.minor <= offer.minor && agreement.max_write <= terms.max_write);
    assert!(agreement.max_readahead <= offer.max_readahead.min(terms.max_readahead));
}
