//! How long one decision takes among 10,000 rules, in nanoseconds: from the cache, without it, and beside
//! both a plain look into a map of as many paths. `cargo xtask bench gate` reads what this prints.

use std::collections::HashMap;
use std::hint::black_box;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::Timestamp;
use palisade_gate::{
    Access, Decider, Decision, Effect, Origin, Pattern, PatternError, Rule, Store,
};

const RULES: usize = 10_000;
/// Paths that are asked about, over and over.
const ASKED: usize = 2_000;
/// The fastest of so many counts: what else the machine does only ever adds.
const ROUNDS: usize = 30;

fn main() -> Result<(), PatternError> {
    let rules = (0..RULES).map(rule).collect::<Result<Vec<_>, _>>()?;
    let asked: Vec<PathBuf> = (0..ASKED).map(path).collect();
    // By bytes, as the decider does it: a path as a key is hashed name by name, which takes longer.
    let map: HashMap<Vec<u8>, usize> =
        (0..RULES).map(|number| (path(number).into_os_string().into_vec(), number)).collect();
    let now = Timestamp::UNIX_EPOCH;
    let decide = |decider: &mut Decider, path: &Path| {
        black_box(decider.decide(path, Access::Read, now));
    };
    let mut without = Decider::new(rules.clone(), 0);
    let mut cached = Decider::new(rules, 4 * ASKED);
    for decider in [&mut without, &mut cached] {
        let mut is_asked =
            |path: &&PathBuf| decider.decide(path, Access::Read, now) == Decision::Ask;
        // Or it would be something else that is measured.
        assert_eq!(asked.iter().filter(|path| is_asked(path)).count(), ASKED / 2);
    }
    let look = |path: &Path| {
        black_box(map.get(path.as_os_str().as_bytes()));
    };
    println!("map {}", fastest(&asked, look));
    println!("cached {}", fastest(&asked, |path| decide(&mut cached, path)));
    println!("without {}", fastest(&asked, |path| decide(&mut without, path)));
    Ok(())
}

/// Of 20 rules 12 are about one path, 7 about a tree, and one is a glob.
fn rule(number: usize) -> Result<Rule, PatternError> {
    let text = match number % 20 {
        0..12 => format!("/opt/vendor{}/share/file{number}.conf", number % 97),
        12..19 => format!("/opt/vendor{}/tree{number}/**", number % 97),
        _ => format!("/opt/vendor{}/include/*/part{number}*.h", number % 97),
    };
    Ok(Rule {
        effect: if number.is_multiple_of(7) { Effect::Deny } else { Effect::Allow },
        pattern: Pattern::parse(&text, None)?,
        access: Access::Read,
        store: [Store::Organisation, Store::Project, Store::User, Store::Session][number % 4],
        until: None,
        origin: Origin::default(),
    })
}

/// For every kind of rule paths that it means, and as many again that none does.
fn path(number: usize) -> PathBuf {
    let vendor = number % 97;
    PathBuf::from(match (number / 20 % 2, number % 20) {
        (0, 0..12) => format!("/opt/vendor{vendor}/share/file{number}.conf"),
        (0, 12..19) => format!("/opt/vendor{vendor}/tree{number}/lib/deep/er/file.so"),
        (0, _) => format!("/opt/vendor{vendor}/include/sys/part{number}_x.h"),
        (_, 0..12) => format!("/opt/vendor{vendor}/share/none{number}.conf"),
        (_, 12..19) => format!("/srv/vendor{vendor}/tree{number}/lib/deep/er/file.so"),
        (_, _) => format!("/opt/vendor{vendor}/include/sys/none{number}_x.h"),
    })
}

/// Nanoseconds for one path.
fn fastest(paths: &[PathBuf], mut look: impl FnMut(&Path)) -> u128 {
    let times = (0..=ROUNDS).map(|_| {
        let start = Instant::now();
        paths.iter().for_each(|path| look(path));
        start.elapsed().as_nanos() / paths.len() as u128
    });
    times.min().unwrap_or_default()
}
