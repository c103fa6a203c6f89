# A new package with a dependency by path, built, tested and installed without a registry.
export CARGO_HOME="$PWD/cargo-home" CARGO_NET_OFFLINE=true
cargo new --quiet --lib helper
cargo new --quiet program
cd program
cargo add --quiet --path ../helper
printf 'fn main() {\n    println!("{}", helper::add(40, 2));\n}\n' > src/main.rs
cargo build --quiet
test "$(cargo run --quiet)" = 42
cargo test --quiet
(cd ../helper && cargo test --quiet)
cargo install --quiet --path . --root ../installed
test "$(../installed/bin/program)" = 42
