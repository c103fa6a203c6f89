//! Enough of ELF to tell a static executable from one that needs a loader.

use anyhow::{Context, Result, bail};

/// Program header type of the path of the loader, `elf(5)`.
const PT_INTERP: u32 = 3;

/// Fails unless the 64-bit little-endian executable asks for no loader.
pub(crate) fn check_static(image: &[u8]) -> Result<()> {
    if image.get(..6) != Some(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit little-endian ELF file");
    }
    let table = usize::try_from(u64::from_le_bytes(bytes_at(image, 32)?))?;
    let entry_size = usize::from(u16::from_le_bytes(bytes_at(image, 54)?));
    let entries = usize::from(u16::from_le_bytes(bytes_at(image, 56)?));
    for entry in 0..entries {
        if u32::from_le_bytes(bytes_at(image, table + entry * entry_size)?) == PT_INTERP {
            bail!("it is not static: it names a loader");
        }
    }
    Ok(())
}

fn bytes_at<const N: usize>(image: &[u8], offset: usize) -> Result<[u8; N]> {
    let end = offset.checked_add(N).context("offset out of range")?;
    let bytes = image.get(offset..end).context("the ELF file is cut short")?;
    Ok(bytes.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::check_static;

    #[test]
    fn a_dynamic_executable_is_told() {
        let shell = std::fs::read("/bin/sh").unwrap();
        assert!(check_static(&shell).unwrap_err().to_string().contains("names a loader"));
    }

    #[test]
    fn without_a_loader_it_is_static() {
        let mut shell = std::fs::read("/bin/sh").unwrap();
        // No program headers, no loader.
        shell[56..58].copy_from_slice(&[0, 0]);
        check_static(&shell).unwrap();
    }

    #[test]
    fn a_cut_or_foreign_file_is_an_error() {
        assert!(check_static(b"#!/bin/sh\n").is_err());
        assert!(check_static(b"\x7fELF\x02\x01").is_err());
    }
}
