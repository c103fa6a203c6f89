use super::{KEY_HEADER, Logins, MAX_LOGINS, NewLogin};
use axum::http::{HeaderMap, header};

fn headers(cookie: &str, key: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::COOKIE, cookie.parse().unwrap());
    if let Some(key) = key {
        headers.insert(KEY_HEADER, key.parse().unwrap());
    }
    headers
}

fn of(login: &NewLogin) -> HeaderMap {
    headers(&format!("other=1; palisade-80={}", login.cookie), Some(&login.key))
}

#[test]
fn a_code_works_once() {
    let logins = Logins::new(80, false);
    assert!(!logins.take_code(""));
    let code = logins.new_code().unwrap();
    assert!(!logins.take_code("wrong"));
    assert!(logins.take_code(&code));
    assert!(!logins.take_code(&code));
}

#[test]
fn a_login_needs_its_cookie_and_its_key_until_it_is_logged_out() {
    let logins = Logins::new(80, false);
    let (one, other) = (logins.log_in().unwrap(), logins.log_in().unwrap());
    assert!(logins.check(&of(&one)).is_ok());
    let cookie = format!("palisade-80={}", one.cookie);
    assert!(logins.check(&headers(&cookie, None)).is_err());
    assert!(logins.check(&headers(&cookie, Some("1"))).is_err());
    assert!(logins.check(&headers(&cookie, Some(&other.key))).is_err(), "the key of another page");
    assert!(logins.check(&headers("palisade-80=", Some(&one.key))).is_err());
    let elsewhere = format!("palisade-8080={}", one.cookie);
    assert!(logins.check(&headers(&elsewhere, Some(&one.key))).is_err(), "of another port");
    assert!(logins.check(&HeaderMap::new()).is_err());
    logins.log_out(&of(&one));
    assert!(logins.check(&of(&one)).is_err());
    assert!(logins.check(&of(&other)).is_ok());
}

#[test]
fn the_oldest_login_gives_way() {
    let logins = Logins::new(80, false);
    let first = logins.log_in().unwrap();
    for _ in 0..MAX_LOGINS {
        logins.log_in().unwrap();
    }
    assert!(logins.check(&of(&first)).is_err());
}

#[test]
fn no_script_and_no_other_site_gets_the_cookie() {
    let cookie = Logins::new(8443, true).set_cookie(Some("x"));
    let expected = "palisade-8443=x; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure";
    assert_eq!(cookie, expected);
    let forgotten = Logins::new(80, false).set_cookie(None);
    assert_eq!(forgotten, "palisade-80=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
}
