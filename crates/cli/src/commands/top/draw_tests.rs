use super::{Shown, draw};
use crate::commands::top::Wanted;
use crate::commands::top::board::Row;
use crate::commands::top::board::tests::row;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn drawn(rows: &[Row], shown: &Shown, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, rows, shown, true)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

fn many(count: usize) -> Vec<Row> {
    (0..count)
        .map(|at| Row { session: format!("session-{at:08}"), ..row(&[("memory", 1 << 30)]) })
        .collect()
}

#[test]
fn the_list_follows_the_selection() {
    let rows = many(20);
    let mut shown = Shown::new(&Wanted::All);
    (0..30).for_each(|_| shown.down());
    shown.settle(&rows);
    let lines = drawn(&rows, &shown, (80, 10));
    assert_eq!(lines[0], " sandbox top: 20 runs");
    assert!(lines[1].starts_with(" SESSION"), "{lines:?}");
    assert!(lines[8].starts_with(" 00000019"), "{lines:?}");
    assert!(lines[9].contains("q quit"), "{lines:?}");
    shown.up();
    shown.enter_details();
    shown.settle(&rows);
    let lines = drawn(&rows, &shown, (80, 24));
    assert_eq!(lines[1], " session    session-00000018");
    assert!(lines.iter().any(|line| line.contains("cgroup-v2  hard")), "{lines:?}");
    assert!(shown.leave_details());
    assert!(!shown.leave_details());
}

#[test]
fn a_run_that_ends_leaves_the_list_where_it_can_be_seen() {
    let mut shown = Shown::new(&Wanted::All);
    let rows = many(3);
    shown.down();
    shown.enter_details();
    shown.settle(&rows);
    shown.settle(&rows[..1]);
    assert_eq!(drawn(&rows[..1], &shown, (60, 8))[0], " sandbox top: 1 run");
    shown.settle(&[]);
    let lines = drawn(&[], &shown, (60, 8));
    assert_eq!(lines[0], " sandbox top: no sandbox of yours is running");
}

#[test]
fn no_size_of_the_window_is_too_small() {
    let rows = many(2);
    let mut single = Shown::new(&Wanted::One(rows[0].session.clone()));
    single.settle(&rows);
    for size in [(1, 1), (5, 2), (20, 3), (200, 1)] {
        drawn(&rows, &Shown::new(&Wanted::All), size);
        drawn(&rows, &single, size);
    }
    assert!(!single.leave_details(), "there is no list behind it");
}
