# A new package with dependencies from the registry, built, tested, and a program installed.
cargo new --quiet sample
cd sample
cargo add --quiet itoa
cargo build --quiet
cargo test --quiet
cargo install --quiet --root ../installed --debug --locked hexyl
../installed/bin/hexyl --version
