use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::interp::SeccompData;
use crate::test_support::{
    BOTH, LISTENING_OR_NOT, answer, condition, is_constantly_allowed, logged, meaning, quietly,
    rule, suspicious,
};
use crate::{Arg, Rule};

fn spec(arch: Arch, rules: Vec<Rule>) -> FilterSpec {
    FilterSpec::new(arch, quietly(38), rules)
}

/// Proves: SYS-1 architecture
#[test]
fn a_foreign_architecture_is_killed_whatever_the_number() {
    for arch in BOTH {
        let program = spec(arch, vec![rule(0, &[], CallAnswer::Allow)])
            .compile(Listening::No)
            .expect("compiles");
        // AUDIT_ARCH_I386 (int 0x80), _ARM, and the other 64-bit one.
        let others = BOTH.map(Arch::audit_value).into_iter().filter(|a| *a != arch.audit_value());
        for foreign in others.chain([0x4000_0003, 0x4000_0028, 0, u32::MAX]) {
            let data = SeccompData { arch: foreign, ..SeccompData::new(arch, 0, [0; 6]) };
            assert_eq!(answer(&program, &data), Action::KillProcess, "{foreign:#x}");
        }
        assert_eq!(answer(&program, &SeccompData::new(arch, 0, [0; 6])), Action::Allow);
    }
}

/// Proves: SYS-1 architecture
#[test]
fn x32_numbers_are_killed_even_if_a_rule_names_one() {
    let rules = vec![rule(1, &[], CallAnswer::Allow), rule(0x4000_0001, &[], CallAnswer::Allow)];
    let program = spec(Arch::X86_64, rules).compile(Listening::No).expect("compiles");
    let ask = |nr| answer(&program, &SeccompData::new(Arch::X86_64, nr, [0; 6]));
    for nr in [0x4000_0000, 0x4000_0001, 0x4000_0208, 0x7fff_ffff, 0xc000_0001, 0xffff_fffe] {
        assert_eq!(ask(nr), Action::KillProcess, "{nr:#x}");
    }
    assert_eq!(ask(0x3fff_ffff), Action::Errno(38));
    assert_eq!(ask(1), Action::Allow);
}

/// Proves: PROC-5 inside
///
/// A tracer that skips a call writes -1 over the number; killing would break fault injection.
#[test]
fn a_call_skipped_by_a_tracer_is_not_killed() {
    let program = spec(Arch::X86_64, Vec::new()).compile(Listening::No).expect("compiles");
    let data = SeccompData::new(Arch::X86_64, u32::MAX, [0; 6]);
    assert_eq!(answer(&program, &data), Action::Errno(38));
}

/// Proves: SYS-1 filter-exact
#[test]
fn a_low_half_comparison_ignores_the_high_half() {
    let is_7 = condition(Arg::A1, Width::Low32, Test::Eq(7));
    let rules = vec![rule(5, &[is_7], quietly(1)), rule(5, &[], CallAnswer::Allow)];
    let program = spec(Arch::X86_64, rules).compile(Listening::No).expect("compiles");
    let ask = |arg| answer(&program, &SeccompData::new(Arch::X86_64, 5, [0, arg, 0, 0, 0, 0]));
    assert_eq!(ask(7), Action::Errno(1));
    assert_eq!(ask(7 | 1 << 32), Action::Errno(1));
    assert_eq!(ask(7 | 0xffff_ffff << 32), Action::Errno(1));
    assert_eq!(ask(8), Action::Allow);
}

/// Proves: SYS-1 filter-exact
#[test]
fn rules_of_one_call_are_tried_in_order() {
    let above = |n| condition(Arg::A0, Width::Full, Test::Gt(n));
    let rules = vec![
        rule(9, &[above(100)], quietly(7)),
        rule(3, &[], logged(8)),
        rule(9, &[above(50)], CallAnswer::Broker),
        rule(9, &[], CallAnswer::Allow),
        rule(9, &[above(0)], CallAnswer::KillProcess),
    ];
    let program = spec(Arch::Aarch64, rules).compile(Listening::Yes).expect("compiles");
    let ask = |arg| answer(&program, &SeccompData::new(Arch::Aarch64, 9, [arg, 0, 0, 0, 0, 0]));
    assert_eq!(ask(101), Action::Errno(7));
    assert_eq!(ask(1 << 40), Action::Errno(7));
    assert_eq!(ask(100), Action::Notify);
    assert_eq!(ask(50), Action::Allow);
}

/// Proves: SYS-1 filter-exact
#[test]
fn only_a_listener_hears_of_refusals_and_only_of_those_that_are_not_quiet() {
    let rules = vec![
        rule(1, &[], quietly(1)),
        rule(2, &[], logged(1)),
        rule(3, &[], suspicious(1)),
        rule(4, &[], CallAnswer::Allow),
    ];
    for arch in BOTH {
        let spec = spec(arch, rules.clone());
        let answers = |listening| {
            let program = spec.compile(listening).expect("compiles");
            [1, 2, 3, 4, 5].map(|nr| answer(&program, &SeccompData::new(arch, nr, [0; 6])))
        };
        let (refused, unknown) = (Action::Errno(1), Action::Errno(38));
        let notified = Action::Notify;
        assert_eq!(answers(Listening::No), [refused, refused, refused, Action::Allow, unknown]);
        assert_eq!(answers(Listening::Yes), [refused, notified, notified, Action::Allow, unknown]);
    }
}

/// Proves: SYS-1 filter-exact
#[test]
fn calls_for_a_broker_do_not_compile_where_nobody_listens() {
    let is_7 = condition(Arg::A1, Width::Low32, Test::Eq(7));
    let asked = spec(Arch::X86_64, vec![rule(2, &[is_7], CallAnswer::Broker)]);
    let refused = asked.compile(Listening::No).expect_err("nobody would perform it");
    assert_eq!(refused, Error::NobodyListens { name: "open".to_owned() });
    assert!(asked.compile(Listening::Yes).is_ok());
    let by_default = FilterSpec::new(Arch::X86_64, CallAnswer::Broker, Vec::new());
    assert!(matches!(by_default.compile(Listening::No), Err(Error::NobodyListens { .. })));
}

#[test]
fn comparing_one_argument_with_many_values_loads_it_once() {
    let rules = (0..20)
        .map(|n| rule(1, &[condition(Arg::A2, Width::Low32, Test::Eq(n))], CallAnswer::Allow))
        .collect();
    let program = spec(Arch::Aarch64, rules).compile(Listening::No).expect("compiles");
    let loads = program.instructions().iter().filter(|i| i.code == 0x20 && i.k >= 16).count();
    assert_eq!(loads, 1);
}

#[test]
fn neighbours_with_the_same_answer_are_one_range() {
    let rules = (0..400).map(|n| rule(n, &[], CallAnswer::Allow)).collect();
    let program = spec(Arch::Aarch64, rules).compile(Listening::No).expect("compiles");
    // Two loads, the architecture, one comparison, three returns.
    assert_eq!(program.instructions().len(), 7);
}

#[test]
fn an_errno_the_kernel_would_cut_is_refused() {
    let too_large = spec(Arch::X86_64, vec![rule(1, &[], quietly(4096))]);
    assert_eq!(too_large.compile(Listening::No), Err(Error::ErrnoTooLarge { errno: 4096 }));
}

/// Proves: SYS-1 filter-exact
#[test]
fn hundreds_of_conditional_calls_still_answer_right() {
    for arch in BOTH {
        let rules: Vec<Rule> = (0..300)
            .map(|n| {
                let exact = condition(Arg::A0, Width::Full, Test::Eq(u64::from(n) << 30));
                rule(n * 2, &[exact], quietly(u16::try_from(n).expect("small")))
            })
            .collect();
        let spec = spec(arch, rules);
        let program = spec.compile(Listening::No).expect("compiles");
        assert!(program.instructions().len() > 1200);
        for nr in 0..610u32 {
            for arg in [0, u64::from(nr / 2) << 30] {
                let data = SeccompData::new(arch, nr, [arg; 6]);
                assert_eq!(
                    answer(&program, &data),
                    meaning(&spec, Listening::No, &data),
                    "{data:x?}"
                );
            }
        }
    }
}

/// Values around the places where comparisons change their mind.
fn edge_value() -> impl Strategy<Value = u64> {
    select(vec![
        0,
        1,
        2,
        3,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        0x1_0000_0001,
        0x1_ffff_ffff,
        0x2_0000_0001,
        0xffff_ffff_0000_0001,
        u64::MAX - 1,
        u64::MAX,
    ])
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let arg = select(vec![Arg::A0, Arg::A1, Arg::A5]);
    let width = select(vec![Width::Low32, Width::Full]);
    let test = prop_oneof![
        edge_value().prop_map(Test::Eq),
        edge_value().prop_map(Test::Ne),
        edge_value().prop_map(Test::Lt),
        edge_value().prop_map(Test::Le),
        edge_value().prop_map(Test::Gt),
        edge_value().prop_map(Test::Ge),
        (edge_value(), edge_value()).prop_map(|(mask, value)| Test::MaskedEq { mask, value }),
        edge_value().prop_map(|mask| Test::MaskedAny { mask }),
    ];
    (arg, width, test).prop_map(|(arg, width, test)| Condition { arg, width, test })
}

fn any_answer() -> impl Strategy<Value = CallAnswer> {
    select(vec![
        CallAnswer::Allow,
        quietly(1),
        quietly(38),
        logged(1),
        logged(13),
        suspicious(1),
        CallAnswer::KillProcess,
        CallAnswer::Broker,
    ])
}

fn any_spec() -> impl Strategy<Value = FilterSpec> {
    let syscall = prop_oneof![4 => 0..8u32, 1 => select(vec![500, 0x3fff_ffff, 0x4000_0000])];
    let rule = (syscall, vec(any_condition(), 0..4), any_answer())
        .prop_map(|(syscall, conditions, answer)| Rule { syscall, conditions, answer });
    (select(BOTH.to_vec()), any_answer(), vec(rule, 0..24))
        .prop_map(|(arch, default, rules)| FilterSpec::new(arch, default, rules))
}

fn needs_a_broker(spec: &FilterSpec) -> bool {
    let answers = spec.rules().iter().map(|rule| rule.answer).chain([spec.default()]);
    answers.into_iter().any(|answer| answer == CallAnswer::Broker)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: SYS-1 filter-exact
    #[test]
    fn the_program_answers_what_the_specification_says(
        spec in any_spec(),
        arguments in vec([edge_value(), edge_value(), edge_value()], 24),
    ) {
        for listening in LISTENING_OR_NOT {
            let program = match spec.compile(listening) {
                Ok(program) => program,
                Err(error) => {
                    prop_assert!(listening == Listening::No && needs_a_broker(&spec), "{}", error);
                    continue;
                }
            };
            for nr in (0..9).chain([499, 500, 501, 0x3fff_ffff, 0x4000_0000, 0x4000_0001, u32::MAX]) {
                for [a, b, c] in &arguments {
                    let data = SeccompData::new(spec.arch(), nr, [*a, *b, 0, 0, 0, *c]);
                    let expected = meaning(&spec, listening, &data);
                    prop_assert_eq!(answer(&program, &data), expected, "{:x?}", data);
                }
            }
        }
    }

    /// Proves: SYS-1 filter-exact
    #[test]
    fn an_unconditional_allow_reads_no_argument(spec in any_spec()) {
        let program = spec.compile(Listening::Yes).expect("compiles");
        for nr in 0..8 {
            let first = spec.rules().iter().find(|rule| rule.syscall == nr);
            if first.is_some_and(|rule| rule.conditions.is_empty() && rule.answer == CallAnswer::Allow) {
                prop_assert!(is_constantly_allowed(&program, spec.arch(), nr), "{}", nr);
            }
        }
    }

    #[test]
    fn compiling_twice_gives_the_same_program(spec in any_spec()) {
        prop_assert_eq!(spec.compile(Listening::Yes), spec.compile(Listening::Yes));
    }
}
