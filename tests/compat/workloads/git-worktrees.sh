# A repository with worktrees, branches, a rebase and a bundle.
export GIT_AUTHOR_NAME=Me GIT_AUTHOR_EMAIL=me@localhost GIT_COMMITTER_NAME=Me GIT_COMMITTER_EMAIL=me@localhost
git init -q -b main repository
cd repository
for number in 1 2 3 4 5; do
    echo "$number" > "file$number"
    git add .
    git commit -q -m "commit $number"
done
git worktree add -q -b side ../side HEAD~2
(cd ../side && echo side > side && git add side && git commit -q -m side && git rebase -q main)
git merge -q --no-edit side
git worktree lock ../side
git worktree unlock ../side
git worktree move ../side ../moved
git worktree remove ../moved
git bundle create -q ../all.bundle --all
git clone -q ../all.bundle ../cloned
git gc -q
git stash list
git tag -a -m tag v1
git fsck --no-progress
test "$(git -C ../cloned log --oneline | wc -l)" = "$(git log --oneline main | wc -l)"
