use super::{Needs, needs};
use std::path::PathBuf;

fn needs_of(content: &[u8]) -> Needs {
    needs(&|offset, length| {
        let rest = content.get(usize::try_from(offset).unwrap()..)?;
        Some(rest[..length.min(rest.len())].to_vec())
    })
}

fn interpreter(path: &str, named: Option<&str>) -> Needs {
    Needs::Interpreter { path: path.into(), named: named.map(PathBuf::from) }
}

const HEADER: usize = 64;
const END: usize = HEADER + 56;

/// An ELF file with one header, which names a loader; all of it happens to be text.
pub(crate) fn dynamic_program(loader: &str) -> Vec<u8> {
    let mut file = vec![0; END];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[32] = u8::try_from(HEADER).unwrap();
    file[54] = u8::try_from(END - HEADER).unwrap();
    file[56] = 1;
    file[HEADER] = 3;
    file[HEADER + 8] = u8::try_from(END).unwrap();
    file[HEADER + 32] = u8::try_from(loader.len() + 1).unwrap();
    file.extend(loader.as_bytes());
    file.push(0);
    file
}

/// Proves: PROC-2 executables
#[test]
fn a_dynamic_program_needs_its_loader() {
    assert_eq!(needs_of(&dynamic_program("/lib/ld.so")), Needs::Loader("/lib/ld.so".into()));
    // Its loader is not in the first header.
    let own = std::fs::read("/proc/self/exe").unwrap();
    assert!(matches!(needs_of(&own), Needs::Loader(path) if path.is_absolute()));
}

/// Proves: PROC-2 executables
#[test]
fn a_script_needs_what_its_first_line_names() {
    assert_eq!(needs_of(b"#!/bin/sh\necho"), interpreter("/bin/sh", None));
    assert_eq!(needs_of(b"#! \t/usr/bin/awk -f"), interpreter("/usr/bin/awk", None));
    assert_eq!(needs_of(b"#!/usr/bin/env python3\n"), interpreter("/usr/bin/env", Some("python3")));
    let split = b"#!/usr/bin/env -S LANG=C node --x\n";
    assert_eq!(needs_of(split), interpreter("/usr/bin/env", Some("node")));
}

#[test]
fn what_is_neither_or_broken_needs_nothing() {
    let mut broken = dynamic_program("/lib/ld.so");
    broken[32..40].fill(0xff);
    let mut beyond = dynamic_program("/lib/ld.so");
    beyond[HEADER + 8..HEADER + 16].fill(0xff);
    let no_line: &[u8] = b"#!\n";
    for content in [&b""[..], b"text", no_line, b"\x7fELF", &broken[..60], &broken, &beyond] {
        assert_eq!(needs_of(content), Needs::Nothing, "{content:?}");
    }
}
