//! The host's disks, by which the kernel limits and counts reads and writes. Must name whole disks only: the kernel
//! accepts no limits for partitions.

use std::path::Path;

/// `MAJOR:MINOR` of every whole disk that is not empty.
pub(crate) fn whole() -> Vec<String> {
    whole_in(Path::new("/sys/block"))
}

fn whole_in(block: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(block).into_iter().flatten().flatten();
    let mut numbers: Vec<String> = entries
        .filter_map(|entry| {
            let text = |file| std::fs::read_to_string(entry.path().join(file)).ok();
            // A loop device without a file, or a drive without a medium.
            let is_empty = text("size")?.trim() == "0";
            let number = text("dev")?.trim().to_owned();
            (!is_empty).then_some(number)
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Whether it is built on other disks (device mapper, RAID), which count the same bytes again.
pub(crate) fn is_stacked(number: &str) -> bool {
    let slaves = Path::new("/sys/dev/block").join(number).join("slaves");
    std::fs::read_dir(slaves).is_ok_and(|mut below| below.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_that_hold_nothing_are_left_out() {
        let block = tempfile::tempdir().unwrap();
        for (name, dev, size) in [("vda", "254:0\n", "4096\n"), ("loop0", "7:0\n", "0\n")] {
            let disk = block.path().join(name);
            std::fs::create_dir(&disk).unwrap();
            std::fs::write(disk.join("dev"), dev).unwrap();
            std::fs::write(disk.join("size"), size).unwrap();
        }
        assert_eq!(whole_in(block.path()), ["254:0"]);
    }
}
