# Submodules, in a repository and in a linked worktree of it.
export GIT_AUTHOR_NAME=Me GIT_AUTHOR_EMAIL=me@localhost GIT_COMMITTER_NAME=Me GIT_COMMITTER_EMAIL=me@localhost
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
git init -q -b main library
(cd library && echo library > file && git add . && git commit -q -m library)
git init -q -b main outer
cd outer
git submodule --quiet add "$PWD/../library" library
git commit -q -m submodule
git worktree add -q ../linked
(cd ../linked && git submodule --quiet update --init && test "$(cat library/file)" = library)
(cd ../library && echo more >> file && git commit -qam more)
git submodule --quiet update --remote
git submodule status
git clone -q --recurse-submodules "$PWD" ../cloned
test -f ../cloned/library/file
git submodule --quiet deinit -f library
