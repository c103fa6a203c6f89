//! Filters of every shape: the compiled program, interpreted, answers as the description says. And
//! any list of instructions that is taken for a program runs to an answer.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use palisade_bpf::{
    Action, CallAnswer, Arch, Arg, Condition, Error, FilterSpec, Insn, Listening, Notice, Program,
    Refusal, Rule, SeccompData, Test, Width, interp,
};

const MAX_ERRNO: u16 = 4095;

fuzz_target!(|data: &[u8]| {
    // An input that is too short for a whole description is no description.
    let _ = try_one(&mut Unstructured::new(data));
});

fn try_one(input: &mut Unstructured<'_>) -> Result<()> {
    if input.ratio(1, 4)? {
        return any_program(input);
    }
    let arch = if input.arbitrary()? { Arch::X86_64 } else { Arch::Aarch64 };
    let listening = if input.arbitrary()? { Listening::Yes } else { Listening::No };
    let default = answer(input)?;
    let mut rules = Vec::new();
    for _ in 0..input.int_in_range(0..=40)? {
        rules.push(rule(input)?);
    }
    let spec = FilterSpec::new(arch, default, rules);
    let answers = || spec.rules().iter().map(|rule| rule.answer).chain([default]);
    let program = match spec.compile(listening) {
        Ok(program) => program,
        Err(Error::TooLong { length }) => {
            assert!(length > 4096);
            return Ok(());
        }
        Err(Error::ErrnoTooLarge { errno }) => {
            assert!(errno > MAX_ERRNO && answers().any(|answer| errno_of(answer) > MAX_ERRNO));
            return Ok(());
        }
        Err(Error::NobodyListens { .. }) => {
            assert!(listening == Listening::No && answers().any(|answer| answer == CallAnswer::Broker));
            return Ok(());
        }
        Err(other) => panic!("{other}: {spec:?}"),
    };
    assert_eq!(program, spec.compile(listening).expect("it was compiled before"));
    for call in calls(input, &spec)? {
        let meant = told(spec.answer(&call), listening);
        let said = Action::from_raw(interp::run(&program, &call));
        assert_eq!(said, Some(meant), "{call:?}\n{spec:?}");
    }
    Ok(())
}

/// What the kernel has to be told, written down a second time.
fn told(answer: CallAnswer, listening: Listening) -> Action {
    match (answer, listening) {
        (CallAnswer::Allow, _) => Action::Allow,
        (CallAnswer::KillProcess, _) => Action::KillProcess,
        (CallAnswer::Refuse(Refusal { errno, notice: Notice::Quiet }), _) => Action::Errno(errno),
        (CallAnswer::Refuse(Refusal { errno, .. }), Listening::No) => Action::Errno(errno),
        (CallAnswer::Refuse(_) | CallAnswer::Broker, _) => Action::Notify,
    }
}

fn errno_of(answer: CallAnswer) -> u16 {
    match answer {
        CallAnswer::Refuse(Refusal { errno, .. }) => errno,
        _ => 0,
    }
}

/// Calls at, above and below every number of the description, with arguments at, above and below
/// every value in it.
fn calls(input: &mut Unstructured<'_>, spec: &FilterSpec) -> Result<Vec<SeccompData>> {
    let mut calls = Vec::new();
    for rule in spec.rules() {
        for nr in [rule.syscall.wrapping_sub(1), rule.syscall, rule.syscall.wrapping_add(1)] {
            let mut args = [0; 6];
            for condition in &rule.conditions {
                args[condition.arg as usize] = near(input, value_of(condition.test))?;
            }
            calls.push(SeccompData::new(spec.arch(), nr, args));
        }
    }
    for _ in 0..4 {
        let (nr, args) = (number(input)?, input.arbitrary()?);
        calls.push(SeccompData {
            arch: input.arbitrary()?,
            ..SeccompData::new(spec.arch(), nr, args)
        });
        calls.push(SeccompData::new(spec.arch(), nr, args));
    }
    Ok(calls)
}

fn near(input: &mut Unstructured<'_>, value: u64) -> Result<u64> {
    const DISTANCES: [u64; 6] = [0, 1, u64::MAX, 1 << 32, 1 << 63, u32::MAX as u64];
    Ok(value.wrapping_add(*input.choose(&DISTANCES)?))
}

fn value_of(test: Test) -> u64 {
    match test {
        Test::Eq(value) | Test::Ne(value) | Test::Lt(value) => value,
        Test::Le(value) | Test::Gt(value) | Test::Ge(value) => value,
        Test::MaskedEq { value, .. } => value,
        Test::MaskedAny { mask } => mask,
    }
}

fn number(input: &mut Unstructured<'_>) -> Result<u32> {
    // Mostly real numbers, so that rules meet; now and then the edges.
    Ok(match input.int_in_range(0..=9)? {
        0 => input.arbitrary()?,
        1 => 0x4000_0000,
        2 => 0x3fff_ffff,
        3 => u32::MAX,
        _ => input.int_in_range(0..=24)?,
    })
}

fn rule(input: &mut Unstructured<'_>) -> Result<Rule> {
    let syscall = number(input)?;
    let mut conditions = Vec::new();
    for _ in 0..input.int_in_range(0..=4)? {
        conditions.push(condition(input)?);
    }
    Ok(Rule { syscall, conditions, answer: answer(input)? })
}

fn answer(input: &mut Unstructured<'_>) -> Result<CallAnswer> {
    let notice = *input.choose(&[Notice::Quiet, Notice::Logged, Notice::Suspicious])?;
    Ok(match input.int_in_range(0..=7)? {
        0..=2 => CallAnswer::Allow,
        3..=5 => CallAnswer::Refuse(Refusal { errno: input.int_in_range(0..=MAX_ERRNO + 1)?, notice }),
        6 => CallAnswer::KillProcess,
        _ => CallAnswer::Broker,
    })
}

fn condition(input: &mut Unstructured<'_>) -> Result<Condition> {
    let arg = *input.choose(&[Arg::A0, Arg::A1, Arg::A2, Arg::A3, Arg::A4, Arg::A5])?;
    let width = if input.arbitrary()? { Width::Full } else { Width::Low32 };
    let value = u64::arbitrary(input)?;
    let test = match input.int_in_range(0..=7)? {
        0 => Test::Eq(value),
        1 => Test::Ne(value),
        2 => Test::Lt(value),
        3 => Test::Le(value),
        4 => Test::Gt(value),
        5 => Test::Ge(value),
        6 => Test::MaskedEq { mask: input.arbitrary()?, value },
        _ => Test::MaskedAny { mask: value },
    };
    Ok(Condition { arg, width, test })
}

fn any_program(input: &mut Unstructured<'_>) -> Result<()> {
    let mut instructions = Vec::new();
    for _ in 0..input.int_in_range(0..=20)? {
        let (code, jt, jf, k) = (
            u16::from(input.arbitrary::<u8>()?),
            input.int_in_range(0..=8)?,
            input.int_in_range(0..=8)?,
            input.arbitrary()?,
        );
        instructions.push(Insn { code, jt, jf, k });
    }
    let Ok(program) = Program::new(instructions) else { return Ok(()) };
    let call = SeccompData::new(Arch::X86_64, input.arbitrary()?, input.arbitrary()?);
    interp::run(&program, &call);
    Ok(())
}
