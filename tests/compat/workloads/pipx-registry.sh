# A program in an environment of its own.
export PIPX_HOME="$PWD/pipx" PIPX_BIN_DIR="$PWD/bin"
pipx install cowsay > log
bin/cowsay -t hello > log
