use super::*;
use std::fs::File;

/// How much of the mapping that `address` is in is in memory, in KiB.
fn resident(smaps: &[u8], address: usize) -> u64 {
    let maps = std::str::from_utf8(smaps).unwrap();
    let mut is_meant = false;
    for line in maps.lines() {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let range = range.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16)));
        if let Some([Ok(from), Ok(to)]) = range {
            is_meant = (from..to).contains(&address);
        } else if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_meant) {
            return size.trim().trim_end_matches(" kB").parse().unwrap();
        }
    }
    panic!("{address:#x} is not mapped");
}

/// Fills the buffer with as little code as there can be: each page of it that runs brings its neighbours into memory.
fn fill(file: &File, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while let Ok(count @ 1..) = rustix::io::read(file, &mut buffer[filled..]) {
        filled += count;
    }
    filled
}

/// Brings all of the program's read-only segments into memory.
fn use_all() {
    for Segment { start, length } in read_only_segments() {
        // SAFETY: a mapping of ours, which is only read.
        let _ = unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_POPULATE_READ) };
    }
}

#[test]
fn code_is_given_back_and_runs_again() {
    let code = code_is_given_back_and_runs_again as fn() as usize;
    let [mut before, mut after] = [(); 2].map(|()| vec![0; 1 << 20]);
    let [first, second] = [(); 2].map(|()| File::open("/proc/self/smaps").unwrap());
    use_all();
    let filled = fill(&first, &mut before);
    before.truncate(filled);
    give_back();
    let filled = fill(&second, &mut after);
    after.truncate(filled);
    let [before, after] = [before, after].map(|smaps| resident(&smaps, code));
    // How much is back by then depends on where the linker put what measures. How much a whole process gives back is
    // tested by LIFE-4 idle.
    assert!(after < before, "{before} KiB before, {after} KiB after");
}

#[test]
fn a_segment_is_given_back_in_whole_pages() {
    let pages = |start, size| whole_pages(start, size, 0x1000).map(|it| (it.start, it.length));
    assert_eq!(pages(0x1000, 0x2000), Some((0x1000, 0x2000)));
    assert_eq!(pages(0x1234, 0x2000), Some((0x2000, 0x1000)));
    assert_eq!(pages(0x1234, 0x0fff), None);
}
