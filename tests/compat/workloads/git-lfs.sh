# Large files beside a repository, and a clone of it that has them.
export GIT_AUTHOR_NAME=Me GIT_AUTHOR_EMAIL=me@localhost GIT_COMMITTER_NAME=Me GIT_COMMITTER_EMAIL=me@localhost
git init -q -b main repository
cd repository
# Without the hooks, which git on the host would run.
git lfs install --local --skip-repo
git lfs track '*.bin'
head -c 100000 /dev/urandom > large.bin
git add .
git commit -q -m large
test "$(git lfs ls-files --name-only)" = large.bin
git lfs fsck
git init -q --bare -b main ../store.git
git remote add origin "$PWD/../store.git"
git push -q origin main
git lfs push --all origin
git clone -q -c filter.lfs.smudge='git-lfs smudge -- %f' -c filter.lfs.required=true ../store.git ../copy
cmp large.bin ../copy/large.bin
