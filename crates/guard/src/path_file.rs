//! Path files of Python (`site-packages/*.pth`): some lines name directories, others are code that runs at
//! every start.
//!
//! `site.addpackage()` runs a line that begins with `import` and a blank. Which bytes end a line depends on the
//! Python version and the encoding, so every byte that is not a printable ASCII character or a tab counts as a
//! line end.

const RUN: [&[u8]; 2] = [b"import ", b"import\t"];

/// Whether `new` has a line of code that is not in `old`.
pub fn brings_code(old: Option<&[u8]>, new: &[u8]) -> bool {
    let known: Vec<&[u8]> = old.map(|old| lines(old).collect()).unwrap_or_default();
    lines(new).any(|line| RUN.iter().any(|start| line.starts_with(start)) && !known.contains(&line))
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends_line = |byte: &u8| !matches!(byte, b'\t' | b' '..=b'~');
    content.split(ends_line)
}

#[cfg(test)]
mod tests {
    use super::brings_code;

    /// Proves: FS-9 path-files
    #[test]
    fn lines_that_are_run_are_found_whatever_ends_the_one_before() {
        for bad in [
            "import evil",
            "import\tevil",
            "/a\nimport evil\n",
            "/a\rimport evil",
            "/a\u{85}import evil",
            "/a\u{2028}import evil",
            "\u{feff}import evil",
            "/a\u{c}import evil",
        ] {
            assert!(brings_code(None, bad.as_bytes()), "{bad:?}");
        }
        for good in ["/home/u/project/src\n", "# import evil\n", "important\n", "../import x\n", ""]
        {
            assert!(!brings_code(None, good.as_bytes()), "{good:?}");
        }
    }

    /// Proves: FS-9 path-files
    #[test]
    fn a_line_that_was_there_may_stay() {
        let old = b"import _virtualenv\n";
        assert!(!brings_code(Some(old), b"/a\nimport _virtualenv\n"));
        assert!(brings_code(Some(old), b"import _virtualenv; evil()\n"));
    }
}
