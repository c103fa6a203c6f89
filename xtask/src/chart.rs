//! A bar chart as SVG, for the README: how long each work takes in each sandbox, as a multiple of bare.
//! Pure: figures in, text out. Colours are readable on light and on dark pages, because an image does not
//! know on which it is shown.

use std::fmt::Write as _;

/// Bars that belong together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// What was measured, and how many times as long as bare it took.
    pub(crate) bars: Vec<(String, f64)>,
}

const WIDTH: f64 = 760.0;
/// Where the bars begin: left of it are the names.
const LEFT: f64 = 250.0;
/// Right of the longest bar is its figure.
const RIGHT: f64 = 60.0;
const BAR: f64 = 14.0;
const BAR_GAP: f64 = 4.0;
const GROUP_GAP: f64 = 14.0;
const TOP: f64 = 46.0;
/// In the order of the bars in a group; the last one is used for all further ones.
const COLOURS: [&str; 4] = ["#2f9e62", "#7fb89a", "#4a7fc1", "#9a9a9a"];
const TEXT: &str = "#808080";

/// The chart. What takes longer than this many times bare is cut there, and its figure says how long it is.
pub(crate) fn svg(title: &str, groups: &[Group], longest: f64) -> String {
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height =
        TOP + (BAR + BAR_GAP) * as_length(bars) + GROUP_GAP * as_length(groups.len()) + BAR;
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let mut body = String::new();
    let mut y = TOP;
    for group in groups {
        text(&mut body, 8.0, y + BAR - 3.0, "start", &group.name);
        for (number, (label, ratio)) in group.bars.iter().enumerate() {
            let colour = COLOURS[number.min(COLOURS.len() - 1)];
            let length = ratio.min(longest) * scale;
            text(&mut body, LEFT - 8.0, y + BAR - 3.0, "end", label);
            push(
                &mut body,
                format_args!(
                    "<rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>"
                ),
            );
            text(&mut body, LEFT + length + 6.0, y + BAR - 3.0, "start", &format!("{ratio:.2}"));
            y += BAR + BAR_GAP;
        }
        y += GROUP_GAP;
    }
    let bare = LEFT + scale;
    push(
        &mut body,
        format_args!(
            "<line x1=\"{bare:.1}\" y1=\"{:.0}\" x2=\"{bare:.1}\" y2=\"{:.0}\" stroke=\"{TEXT}\" stroke-dasharray=\"3 3\"/>",
            TOP - 8.0,
            y - GROUP_GAP
        ),
    );
    text(&mut body, bare, TOP - 12.0, "middle", "bare");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>{}</title>\n{body}</svg>\n",
        escaped(title)
    )
}

fn text(body: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escaped(words);
    push(
        body,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.0}\" text-anchor=\"{anchor}\" fill=\"{TEXT}\">{words}</text>"
        ),
    );
}

fn push(body: &mut String, line: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = writeln!(body, "{line}");
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn as_length(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::{Group, svg};

    fn chart() -> String {
        let group = |name: &str, bars: &[(&str, f64)]| Group {
            name: name.to_owned(),
            bars: bars.iter().map(|(label, ratio)| ((*label).to_owned(), *ratio)).collect(),
        };
        let groups = [
            group("git status", &[("sandbox", 1.03), ("bwrap", 1.2)]),
            group("a < b & c", &[("sandbox", 9.0)]),
        ];
        svg("Time & speed", &groups, 4.0)
    }

    #[test]
    fn every_figure_has_a_bar_and_stands_beside_it() {
        let chart = chart();
        assert_eq!(chart.matches("<rect").count(), 3);
        for figure in [">1.03<", ">1.20<", ">9.00<"] {
            assert!(chart.contains(figure), "{figure} is missing in {chart}");
        }
    }

    #[test]
    fn bars_are_as_long_as_their_figures_and_end_at_the_longest() {
        let chart = chart();
        // 450 of width for 4 times bare.
        assert!(chart.contains("width=\"115.9\""), "{chart}");
        assert!(chart.contains("width=\"135.0\""), "{chart}");
        assert!(chart.contains("width=\"450.0\""), "{chart}");
    }

    #[test]
    fn names_are_text_and_not_markup() {
        let chart = chart();
        assert!(
            chart.contains("a &lt; b &amp; c") && chart.contains("Time &amp; speed"),
            "{chart}"
        );
    }
}
