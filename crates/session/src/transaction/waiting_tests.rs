use super::super::checkpoints::{Checkpoint, CheckpointReason};
use super::super::rollback::RunningCommands;
use super::*;
use crate::app_dirs::AppDirs;
use crate::sessions::{self, TimeToLive};
use jiff::Timestamp;
use palisade_changes::Baseline;
use palisade_record::State;
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A session that is over, with one file that was added.
struct Ended {
    directory: tempfile::TempDir,
    record: SessionRecord,
}

impl Ended {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().canonicalize().unwrap().join("project");
        fs::create_dir(&project).unwrap();
        let record = SessionRecord {
            id: new_session_id(),
            name: None,
            created_at: Timestamp::now(),
            project,
            command: None,
            presets: Vec::new(),
            level: None,
            has_own_network: false,
            time_to_live: TimeToLive::default(),
            checkpoint_each_command: false,
            transaction: None,
            recording: None,
            state: State::Completed,
            is_prepared: false,
            supervisor: None,
            exit_code: Some(0),
            ended_at: None,
            end_reason: None,
        };
        let ended = Self { directory, record };
        let (made, _lock) = sessions::create(&ended.places(), &ended.record).unwrap();
        fs::create_dir_all(made.path().join(UPPER)).unwrap();
        fs::write(made.path().join(UPPER).join("made"), "made").unwrap();
        let baseline = Baseline::started(super::super::now_on_files());
        let transaction = TransactionRecord {
            baseline,
            commit: None,
            method: TransactionMethod::Overlay,
            hidden: Vec::new(),
            is_of_one_run: false,
            until_restart_of: None,
        };
        made.write_json(RECORD, &transaction, Synced::Nothing).unwrap();
        ended
    }

    fn places(&self) -> AppDirs {
        let at = self.directory.path();
        AppDirs {
            organisation: at.join("organisation"),
            user: at.join("user"),
            state: at.join("state"),
            runtime: at.join("state/run"),
        }
    }

    fn session(&self) -> SessionDirectory {
        SessionDirectory::open(&self.places(), &self.record.id).unwrap().unwrap()
    }

    fn open(&self) -> WaitingChanges {
        WaitingChanges::open(self.session(), self.record.clone()).unwrap().unwrap()
    }

    fn made(&self) -> PathBuf {
        self.session().path().join(UPPER).join("made")
    }
}

/// Proves: LIFE-4 ttl, LIFE-2 discard
#[test]
fn what_an_expired_session_leaves_is_discarded_with_its_checkpoints_and_recorded() {
    let ended = Ended::new();
    let places = ended.places();
    ended.open().checkpoint(&places, None, CheckpointReason::BeforeCommand).unwrap();
    assert!(!ended.open().is_empty());
    assert_eq!(ended.open().discard_expired(&places, true).unwrap(), Some(1));
    assert!(WaitingChanges::open(ended.session(), ended.record.clone()).unwrap().is_none());
    let left = |name| ended.session().path().join(name).exists();
    assert_eq!([LAYERS, CHECKPOINTS].map(left), [false, false]);
    assert!(!ended.record.project.join("made").exists());
    let log = fs::read_to_string(places.audit_log()).unwrap();
    for event in ["CHANGES_DISCARDED", "FILE_OPERATION"] {
        assert_eq!(log.matches(event).count(), 1, "{log}");
    }
}

/// They were opened before another process brought a state back.
#[test]
fn changes_that_were_replaced_meanwhile_are_neither_applied_nor_removed() {
    let ended = Ended::new();
    let places = ended.places();
    let opened = ended.open();
    opened.checkpoint(&places, None, CheckpointReason::Asked).unwrap();
    let other = ended.open();
    for state in [0, 1] {
        ended.open().roll_back(&places, state, RunningCommands::Refuse).unwrap();
    }
    let refused = other.apply(&places, &ApplyOptions::all(&NoJudge), SessionProcesses::Gone);
    assert!(matches!(refused, Err(SessionError::ChangesReplaced { .. })), "{refused:?}");
    let refused = other.discard(&places);
    assert!(matches!(refused, Err(SessionError::ChangesReplaced { .. })), "{refused:?}");
    assert!(ended.made().exists());
    assert!(!ended.record.project.join("made").exists());
    // A state is kept of what is there by now.
    let kept = opened.checkpoint(&places, None, CheckpointReason::Asked).unwrap();
    assert_eq!(kept.entries, 1);
    let now = ended.open();
    let applied = now.apply(&places, &ApplyOptions::all(&NoJudge), SessionProcesses::Gone);
    assert!(matches!(applied, Ok(Outcome::Applied(_))), "{applied:?}");
    assert_eq!(fs::read(ended.record.project.join("made")).unwrap(), b"made");
}

/// One that nobody asked for can be dropped while somebody looks at it.
///
/// Proves: LIFE-5 applied
#[test]
fn a_checkpoint_that_was_dropped_meanwhile_is_not_applied() {
    let ended = Ended::new();
    let places = ended.places();
    let opened = ended.open();
    let asked = |opened: &WaitingChanges| {
        opened.checkpoint(&places, None, CheckpointReason::ForReview).unwrap().number
    };
    let first = ended.open().at_checkpoint(asked(&opened)).unwrap();
    let second = ended.open().at_checkpoint(asked(&opened)).unwrap();
    for _ in 0..3 {
        asked(&opened);
    }
    let all = ApplyOptions::all(&NoJudge);
    let gone = first.apply(&places, &all, SessionProcesses::Gone);
    assert!(matches!(gone, Err(SessionError::NoCheckpoint { number: 1, .. })), "{gone:?}");
    assert!(!ended.record.project.join("made").exists());
    let applied = second.apply(&places, &all, SessionProcesses::Gone);
    assert!(matches!(applied, Ok(Outcome::Applied(_))), "{applied:?}");
    assert_eq!(fs::read(ended.record.project.join("made")).unwrap(), b"made");
}

/// The mark of a rollback that is going on looks like that of one which was interrupted.
#[test]
fn whoever_finds_a_rollback_that_is_going_on_waits_for_its_end() {
    let ended = Ended::new();
    drop(ended.open().check_state(StateNumber::Checkpoint(0)));
    let session = ended.session();
    let lock = interrupted::lock(&session).unwrap();
    interrupted::Mark { checkpoint: 0, is_under_way: false }.write(&session).unwrap();
    let (done, is_done) = channel();
    std::thread::scope(|scope| {
        let ended = &ended;
        scope.spawn(move || {
            drop(ended.open());
            done.send(()).unwrap();
        });
        let waited = is_done.recv_timeout(Duration::from_millis(200));
        assert!(waited.is_err() && ended.made().exists(), "it did not wait");
        // Whoever has the lock ended it.
        interrupted::remove_mark(&session).unwrap();
        drop(lock);
        is_done.recv_timeout(Duration::from_secs(20)).unwrap();
    });
    assert!(ended.made().exists(), "it was done twice");
}

/// After a loss of power, a record may be empty.
#[test]
fn a_checkpoint_whose_record_is_lost_keeps_its_number() {
    let ended = Ended::new();
    let (places, waiting) = (ended.places(), ended.open());
    for number in 1..=2 {
        let kept = waiting.checkpoint(&places, None, CheckpointReason::Asked).unwrap();
        assert_eq!(kept.number, number);
    }
    fs::write(ended.session().path().join("checkpoints/2/checkpoint.json"), "").unwrap();
    let kept = waiting.checkpoint(&places, None, CheckpointReason::Asked).unwrap();
    assert_eq!(kept.number, 3);
}

/// Those before a command are not synced, so that after a restart of the machine nobody knows what is in them.
///
/// Proves: LIFE-5 checkpoint
#[test]
fn a_checkpoint_before_a_command_lasts_until_the_machine_starts_anew() {
    let ended = Ended::new();
    let (places, waiting) = (ended.places(), ended.open());
    let kept = waiting.checkpoint(&places, None, CheckpointReason::BeforeCommand).unwrap();
    let this_start = kept.until_restart_of.clone().unwrap();
    let asked = waiting.checkpoint(&places, None, CheckpointReason::Asked).unwrap();
    waiting.write_checkpoints().unwrap();
    let asked = Checkpoint { until_restart_of: None, ..asked };
    assert_eq!(waiting.checkpoints().unwrap(), [kept, asked.clone()]);
    restart(&ended, 1, &this_start);
    assert_eq!(waiting.checkpoints().unwrap(), [asked]);
    let refused = ended.open().roll_back(&places, 1, RunningCommands::Refuse);
    assert!(matches!(refused, Err(SessionError::NoCheckpoint { number: 1, .. })), "{refused:?}");
}

/// As if the machine had started anew since a checkpoint was made.
fn restart(ended: &Ended, number: u32, this_start: &str) {
    let record = ended.session().path().join(format!("checkpoints/{number}/checkpoint.json"));
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace(this_start, "of another start")).unwrap();
}

/// Proves: LIFE-5 checkpoint, LIFE-5 crash
#[test]
fn a_checkpoint_counts_after_a_restart_as_soon_as_its_files_are_on_disk() {
    let ended = Ended::new();
    let (places, waiting) = (ended.places(), ended.open());
    let made = waiting.checkpoint(&places, None, CheckpointReason::Asked).unwrap();
    let this_start = made.until_restart_of.clone().unwrap();
    assert!(!made.is_on_disk());
    assert_eq!(waiting.checkpoints().unwrap(), std::slice::from_ref(&made));
    let place = ended.session().path().join("checkpoints/1");
    // A mark that may not be on disk itself does not count before the next start.
    fs::write(place.join("written"), "").unwrap();
    assert_eq!(waiting.checkpoints().unwrap(), std::slice::from_ref(&made));
    waiting.write_checkpoints().unwrap();
    let written = Checkpoint { until_restart_of: None, ..made };
    assert_eq!(waiting.checkpoints().unwrap(), std::slice::from_ref(&written));
    restart(&ended, 1, &this_start);
    assert_eq!(waiting.checkpoints().unwrap(), std::slice::from_ref(&written));
    // The second mark need not have come to the disk.
    fs::remove_file(place.join("on-disk")).unwrap();
    assert_eq!(waiting.checkpoints().unwrap(), [written]);
    // Without the first one nobody knows what is in it.
    fs::remove_file(place.join("written")).unwrap();
    assert_eq!(waiting.checkpoints().unwrap(), []);
}

/// While a command works, nothing of its changes is synced.
///
/// Proves: LIFE-2 apply
#[test]
fn changes_from_before_a_restart_are_applied_only_if_somebody_insists_or_they_were_synced() {
    let ended = Ended::new();
    let places = ended.places();
    let begun = |start: Option<&str>| {
        let record: TransactionRecord = ended.session().read_json(RECORD).unwrap();
        let until_restart_of = start.map(str::to_owned);
        let record = TransactionRecord { until_restart_of, ..record };
        ended.session().write_json(RECORD, &record, Synced::Nothing).unwrap();
    };
    let apply = |on_conflict| {
        let options = ApplyOptions { on_conflict, ..ApplyOptions::all(&NoJudge) };
        ended.open().apply(&places, &options, SessionProcesses::Gone)
    };
    begun(Some("another start"));
    let refused = apply(OnConflict::Refuse);
    assert!(matches!(refused, Err(SessionError::MaybeIncomplete { .. })), "{refused:?}");
    assert!(ended.made().exists() && !ended.record.project.join("made").exists());
    ended.open().sync().unwrap();
    let record: TransactionRecord = ended.session().read_json(RECORD).unwrap();
    assert_eq!(record.until_restart_of, None);
    begun(Some("another start"));
    let applied = apply(OnConflict::Force);
    assert!(matches!(applied, Ok(Outcome::Applied(_))), "{applied:?}");
    assert!(ended.record.project.join("made").exists());
}
