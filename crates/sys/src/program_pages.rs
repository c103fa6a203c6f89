//! Gives back the pages of the program itself while a process waits. They are clean copies of its file, and come back from
//! the page cache when they are used: a process that waits for hours need not count for megabytes.

#![expect(unsafe_code, reason = "madvise on the program's own segments has no safe wrapper")]

use std::ffi::c_void;

/// One segment of the program, in whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    start: usize,
    length: usize,
}

/// Gives back what can be read again from the file. What cannot stays, silently: nothing depends on it.
pub(crate) fn give_back() {
    for Segment { start, length } in read_only_segments() {
        // SAFETY: the range is a private mapping of our own file that is never writable, so no page of it differs from the
        // file. The kernel reads a page again when it is used, also this code.
        let _ = unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_DONTNEED) };
    }
}

fn read_only_segments() -> Vec<Segment> {
    let mut found = Vec::new();
    // SAFETY: `collect` has the signature that dl_iterate_phdr(3) asks for, and `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut found).cast()) };
    found
}

/// For the program alone, which comes first: shared libraries are relocated in place on some systems.
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    found: *mut c_void,
) -> libc::c_int {
    const STOP: libc::c_int = 1;
    // SAFETY: the C library's, and valid during the call.
    let info = unsafe { &*info };
    // SAFETY: the list of `read_only_segments`, which nobody else uses during the call.
    let found = unsafe { &mut *found.cast::<Vec<Segment>>() };
    if info.dlpi_phdr.is_null() {
        return STOP;
    }
    // SAFETY: the kernel passed this many headers to the program, and they stay mapped.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let page = rustix::param::page_size();
    for header in headers {
        if let (Ok(address), Ok(size)) =
            (usize::try_from(header.p_vaddr), usize::try_from(header.p_memsz))
            && let Ok(base) = usize::try_from(info.dlpi_addr)
            && header.p_type == libc::PT_LOAD
            && header.p_flags & libc::PF_W == 0
        {
            found.extend(whole_pages(base + address, size, page));
        }
    }
    STOP
}

/// Without the pages that it only partly fills: another segment may have the rest.
fn whole_pages(start: usize, size: usize, page: usize) -> Option<Segment> {
    let first = start.next_multiple_of(page);
    let end = (start + size) / page * page;
    (first < end).then(|| Segment { start: first, length: end - first })
}

#[cfg(test)]
#[path = "program_pages_tests.rs"]
mod tests;
