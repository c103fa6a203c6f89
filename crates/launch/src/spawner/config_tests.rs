use super::*;

impl WireMessage for EncodedLandlock {
    const MAX_BYTES: usize = SpawnerConfig::MAX_BYTES;
}

/// Descriptors in flight count for the whole user: a command must not be able to use up what the supervisor may send.
#[test]
fn a_command_has_fewer_open_files_than_the_supervisor() {
    let ours = palisade_sys::proc::get_rlimit(palisade_sys::proc::Resource::Nofile).soft.unwrap();
    let unlimited = open_files(ResourceLimit { soft: None, hard: None });
    assert!(unlimited.soft.unwrap() < ours && unlimited.hard.unwrap() < ours);
    let few = open_files(ResourceLimit { soft: Some(10), hard: Some(20) });
    assert_eq!((few.soft, few.hard), (Some(10), Some(20)));
}

#[test]
fn rules_arrive_as_they_were_planned() {
    let planned = Landlock {
        abi: 6,
        restrict_reads: false,
        refuse_truncation: true,
        readable: vec!["/r".into()],
        writable: vec!["/w".into(), "/x".into()],
        guarded: vec!["/g".into()],
        build_dirs: vec!["/g/target".into()],
        devices: vec!["/dev/null".into()],
        executables: Execution::Readable,
        refuse_tcp: false,
        scope: true,
    };
    let (listed, built) = (vec!["/b".into()], vec!["/g/target".into()]);
    let executables = Executables { listed, built, ..Executables::default() };
    let listed = Landlock { executables: Execution::Listed(executables), ..planned.clone() };
    for planned in [planned, listed] {
        let packet = palisade_wire::encode(&EncodedLandlock(planned.clone())).unwrap();
        let EncodedLandlock(arrived) = palisade_wire::decode(&packet).unwrap();
        assert_eq!(arrived, planned);
    }
}
