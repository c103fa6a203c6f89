use super::{Form, PartHead, boundary};
use std::io::Read;

/// Gives a few bytes at a time, as a network does.
struct Slowly<'b>(&'b [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = self.1.min(to.len());
        self.0.take(most as u64).read(to).inspect(|count| self.0 = &self.0[*count..])
    }
}

fn parts(body: &[u8], step: usize) -> std::io::Result<Vec<(PartHead, Vec<u8>)>> {
    let mut form = Form::new(Slowly(body, step), "b0");
    let mut found = Vec::new();
    while let Some((head, mut part)) = form.next_part()? {
        let mut content = Vec::new();
        part.read_to_end(&mut content)?;
        found.push((head, content));
    }
    Ok(found)
}

fn head(file_name: &str) -> PartHead {
    PartHead { name: "file".to_owned(), file_name: Some(file_name.to_owned()) }
}

#[test]
fn parts_come_out_whole_however_the_bytes_come() {
    let body =
        b"--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a/b c.txt\"\r\n\
        Content-Type: text/plain\r\n\r\none\r\n--b\r\n\r\n--b0\r\n\
        content-disposition: form-data; filename=\"q%22%25.txt\"; name=file\r\n\r\n\r\n--b0--\r\n";
    for step in [1, 2, 3, 7, 64, 4096] {
        let found = parts(body, step).unwrap();
        let expected =
            [(head("/a/b c.txt"), b"one\r\n--b\r\n".to_vec()), (head("q\"%25.txt"), vec![])];
        assert_eq!(found, expected, "{step}");
    }
    assert_eq!(parts(b"--b0--", 4).unwrap(), []);
}

#[test]
fn a_form_that_breaks_off_or_makes_no_sense_is_an_error() {
    let start = b"--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncut";
    for length in 0..start.len() {
        assert!(parts(&start[..length], 5).is_err(), "{length}");
    }
    assert!(parts(b"--b0\r\nContent-Type: text/plain\r\n\r\nx\r\n--b0--", 9).is_err(), "no name");
    let mut long = b"--b0\r\nX: ".to_vec();
    long.resize(100_000, b'x');
    assert!(parts(&long, 4096).is_err(), "an endless head");
}

#[test]
fn the_boundary_is_a_parameter_of_the_type() {
    assert_eq!(boundary("multipart/form-data; boundary=abc").as_deref(), Some("abc"));
    assert_eq!(boundary("Multipart/Form-Data; x=1; boundary=\"a b\"").as_deref(), Some("a b"));
    for wrong in ["multipart/form-data", "text/plain; boundary=a", "multipart/form-data; boundary="]
    {
        assert_eq!(boundary(wrong), None, "{wrong}");
    }
}
