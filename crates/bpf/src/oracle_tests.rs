//! libseccomp, which containers have trusted for years, builds the same filters; both programs run in
//! our interpreter and must agree. It cannot say "the first rule that holds", so each call gets
//! rules with one action, and whatever none of them catches falls to the filter's default.
#![cfg(target_arch = "x86_64")]

use std::io::{Read as _, pipe};

use libseccomp::{ScmpAction, ScmpArgCompare, ScmpCompareOp, ScmpFilterContext, ScmpSyscall};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::interp::SeccompData;
use crate::test_support::{LISTENING_OR_NOT, answer, logged, quietly};
use crate::{
    Action, Arch, Arg, BaselineOptions, CallAnswer, Condition, FilterSpec, Insn, Listening,
    Profile, Program, Rule, Test, Width, table,
};

fn scmp_action(answer: CallAnswer, listening: Listening) -> ScmpAction {
    match answer.action(listening).expect("compiles") {
        Action::Allow => ScmpAction::Allow,
        Action::Errno(errno) => ScmpAction::Errno(errno.into()),
        Action::KillProcess => ScmpAction::KillProcess,
        Action::Notify => ScmpAction::Notify,
    }
}

/// The alternatives, of which one must hold, that say what one of our conditions says.
fn scmp_compares(condition: Condition) -> Vec<ScmpArgCompare> {
    let compare = |op, value| ScmpArgCompare::new(u32::from(condition.arg as u8), op, value);
    let low = 0xffff_ffff;
    match (condition.width, condition.test) {
        (Width::Full, Test::Eq(value)) => vec![compare(ScmpCompareOp::Equal, value)],
        (Width::Full, Test::Ne(value)) => vec![compare(ScmpCompareOp::NotEqual, value)],
        (Width::Full, Test::Lt(value)) => vec![compare(ScmpCompareOp::Less, value)],
        (Width::Full, Test::Le(value)) => vec![compare(ScmpCompareOp::LessOrEqual, value)],
        (Width::Full, Test::Gt(value)) => vec![compare(ScmpCompareOp::Greater, value)],
        (Width::Full, Test::Ge(value)) => vec![compare(ScmpCompareOp::GreaterEqual, value)],
        (Width::Full, Test::MaskedEq { mask, value }) => {
            vec![compare(ScmpCompareOp::MaskedEqual(mask), value)]
        }
        (Width::Low32, Test::Eq(value)) => {
            vec![compare(ScmpCompareOp::MaskedEqual(low), value)]
        }
        (Width::Low32, Test::MaskedEq { mask, value }) => {
            vec![compare(ScmpCompareOp::MaskedEqual(mask & low), value)]
        }
        (width, Test::MaskedAny { mask }) => {
            let mask = if width == Width::Low32 { mask & low } else { mask };
            (0..64)
                .map(|bit| 1 << bit)
                .filter(|bit| mask & bit != 0)
                .map(|bit| compare(ScmpCompareOp::MaskedEqual(bit), bit))
                .collect()
        }
        (Width::Low32, other) => panic!("libseccomp cannot say {other:?} of a low half"),
    }
}

fn alternatives(conditions: &[Condition]) -> Vec<Vec<ScmpArgCompare>> {
    conditions.iter().fold(vec![Vec::new()], |rows, condition| {
        let choices = scmp_compares(*condition);
        rows.iter()
            .flat_map(|row| choices.iter().map(|choice| [row.as_slice(), &[*choice]].concat()))
            .collect()
    })
}

fn built_by_libseccomp(spec: &FilterSpec, listening: Listening) -> Program {
    let mut filter = ScmpFilterContext::new(scmp_action(spec.default(), listening))
        .expect("libseccomp (Debian: libseccomp-dev) is needed for this test");
    filter.set_act_badarch(ScmpAction::KillProcess).expect("bad-architecture action");
    for rule in spec.rules() {
        let action = scmp_action(rule.answer, listening);
        let syscall = ScmpSyscall::from(i32::try_from(rule.syscall).expect("small"));
        if rule.conditions.is_empty() {
            filter.add_rule_exact(action, syscall).expect("rule");
        } else {
            for row in alternatives(&rule.conditions) {
                filter.add_rule_conditional_exact(action, syscall, &row).expect("rule");
            }
        }
    }
    let (mut reader, writer) = pipe().expect("pipe");
    // 4096 instructions of eight bytes fit into the pipe's 64 KiB.
    filter.export_bpf(&writer).expect("export");
    drop(writer);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).expect("read");
    let instructions = bytes.as_chunks::<8>().0.iter().map(|raw| Insn {
        code: u16::from_le_bytes([raw[0], raw[1]]),
        jt: raw[2],
        jf: raw[3],
        k: u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]),
    });
    Program::new(instructions.collect()).expect("libseccomp's program passes our checks")
}

const NUMBERS_TO_TRY: [u32; 6] =
    [0x3fff_ffff, 0x4000_0000, 0x4000_0001, 0x8000_0000, 0xffff_fffe, u32::MAX];

fn assert_same(
    spec: &FilterSpec,
    listening: Listening,
    numbers: impl Iterator<Item = u32>,
    arguments: &[[u64; 6]],
) {
    let ours = spec.compile(listening).expect("compiles");
    let theirs = built_by_libseccomp(spec, listening);
    for nr in numbers.chain(NUMBERS_TO_TRY) {
        for args in arguments {
            let data = SeccompData::new(spec.arch(), nr, *args);
            assert_eq!(answer(&ours, &data), answer(&theirs, &data), "{data:x?} of {spec:?}");
            let foreign = SeccompData { arch: 0x4000_0003, ..data };
            assert_eq!(answer(&ours, &foreign), answer(&theirs, &foreign), "{foreign:x?}");
        }
    }
}

/// Proves: SYS-1 filter-exact
#[test]
fn the_unconditional_part_of_the_baseline_agrees() {
    let options = BaselineOptions::new(Arch::X86_64);
    let whole = Profile::baseline(options).spec();
    for listening in LISTENING_OR_NOT {
        let mut rules = whole.rules().to_vec();
        let conditional: Vec<u32> =
            rules.iter().filter(|r| !r.conditions.is_empty()).map(|r| r.syscall).collect();
        // libseccomp refuses rules that say what the default says.
        let default = whole.default().action(listening);
        rules
            .retain(|r| r.answer.action(listening) != default && !conditional.contains(&r.syscall));
        assert!(rules.len() > 300);
        let spec = FilterSpec::new(Arch::X86_64, whole.default(), rules);
        assert_same(&spec, listening, 0..600, &[[0; 6], [u64::MAX; 6]]);
    }
}

/// Proves: SYS-1 filter-exact
///
/// Each call alone, its closing decision as the filter's default.
#[test]
fn conditions_of_the_baseline_agree() {
    let plain = BaselineOptions::new(Arch::X86_64);
    let refusing = BaselineOptions { refuse_setid_modes: true, ..plain };
    let guarding = BaselineOptions { guard_writes: true, ..plain };
    let edges: Vec<u64> = [0, 1, 2, 8, 10, 0x11, 0o644, 0o4755, 0o2755, 0o6777, 0x41, 0x40_0040]
        .into_iter()
        .chain([0x5410, 0x5412, 0x541c, 0x541d, 0x5423, 0x2_0000, 0x2_0008, 0x4_0000])
        .chain([0x1000_0000, 0x7e02_0000, 0x4_0600, 0xffff_ffff])
        .flat_map(|value| [value, value | 1 << 32, value | 0xffff_ffff << 32])
        .collect();
    let arguments: Vec<[u64; 6]> =
        edges.iter().flat_map(|a| edges.iter().map(|b| [*a, *b, *a, *b, *a, *b])).collect();
    let cases = [
        (refusing, Listening::No, "clone"),
        (refusing, Listening::Yes, "clone"),
        (refusing, Listening::No, "unshare"),
        (refusing, Listening::No, "ioctl"),
        (refusing, Listening::Yes, "ioctl"),
        (refusing, Listening::No, "personality"),
        (refusing, Listening::No, "seccomp"),
        (refusing, Listening::No, "socketpair"),
        (refusing, Listening::Yes, "chmod"),
        (refusing, Listening::Yes, "fchmodat"),
        (refusing, Listening::No, "openat"),
        (refusing, Listening::No, "mknod"),
        (refusing, Listening::Yes, "keyctl"),
        (guarding, Listening::Yes, "open"),
        (guarding, Listening::Yes, "openat"),
    ];
    for (options, listening, name) in cases {
        let nr = table::number(Arch::X86_64, name).expect("known");
        let all = Profile::baseline(options).spec();
        let (closing, conditional): (Vec<Rule>, Vec<Rule>) = all
            .rules()
            .iter()
            .filter(|rule| rule.syscall == nr)
            .cloned()
            .partition(|rule| rule.conditions.is_empty());
        assert!(!conditional.is_empty(), "{name} has conditions");
        let spec = FilterSpec::new(Arch::X86_64, closing[0].answer, conditional);
        assert_same(&spec, listening, [nr, nr + 1].into_iter(), &arguments);
    }
}

fn edge() -> impl Strategy<Value = u64> {
    select(vec![0, 1, 2, 0xffff_fffe, 0xffff_ffff, 1 << 32, (1 << 32) | 1, u64::MAX - 1, u64::MAX])
}

fn condition_on(arg: Arg) -> impl Strategy<Value = Condition> {
    let test = prop_oneof![
        edge().prop_map(Test::Eq),
        edge().prop_map(Test::Ne),
        edge().prop_map(Test::Lt),
        edge().prop_map(Test::Le),
        edge().prop_map(Test::Gt),
        edge().prop_map(Test::Ge),
        // libseccomp drops the value's bits outside the mask; ours would never hold.
        (edge(), edge()).prop_map(|(mask, value)| Test::MaskedEq { mask, value: mask & value }),
    ];
    test.prop_map(move |test| Condition { arg, width: Width::Full, test })
}

/// libseccomp takes one comparison an argument in one rule.
fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    subsequence(vec![Arg::A0, Arg::A2, Arg::A5], 1..=3)
        .prop_flat_map(|args| args.into_iter().map(condition_on).collect::<Vec<_>>())
}

/// One rule a call: libseccomp 2.5 merges several wrongly where their ranges overlap (`arg <= 0` and
/// `arg <= 1 << 32` of one call refuse 1). Several rules are held against their plain meaning in
/// `compile_tests`.
fn spec() -> impl Strategy<Value = FilterSpec> {
    let answer = select(vec![CallAnswer::Allow, CallAnswer::Broker, logged(1), quietly(13)]);
    vec((conditions(), answer), 1..40).prop_map(|calls| {
        let rules = (0..)
            .zip(calls)
            .map(|(syscall, (conditions, answer))| Rule { syscall, conditions, answer })
            .collect();
        FilterSpec::new(Arch::X86_64, quietly(38), rules)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: SYS-1 filter-exact
    #[test]
    fn random_conditions_agree(spec in spec(), arguments in vec([edge(), edge(), edge()], 16)) {
        let arguments: Vec<[u64; 6]> =
            arguments.into_iter().map(|[a, b, c]| [a, 0, b, 0, 0, c]).collect();
        assert_same(&spec, Listening::Yes, 0..41, &arguments);
    }
}
