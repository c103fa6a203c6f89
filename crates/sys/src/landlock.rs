//! Asks the kernel for its Landlock ABI; the `landlock` crate handles rules. Must never create a ruleset.

#![expect(unsafe_code, reason = "the version query has no safe wrapper")]

use crate::error::{At, Result, check};

const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;

/// The Landlock ABI. `ENOSYS`: not built in; `EOPNOTSUPP`: built in but disabled at boot.
pub fn landlock_abi() -> Result<u32> {
    // SAFETY: with the version flag the kernel demands a null attribute of size zero and touches no
    // memory.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    let abi = check(returned).call("landlock_create_ruleset")?;
    Ok(u32::try_from(abi).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;

    #[test]
    fn the_kernel_names_its_abi_or_says_that_there_is_none() {
        match landlock_abi() {
            Ok(abi) => assert!((1..1000).contains(&abi), "{abi}"),
            Err(error) => assert!(matches!(error.errno, Errno::NOSYS | Errno::OPNOTSUPP)),
        }
    }
}
