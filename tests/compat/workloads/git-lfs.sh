# Large files beside a repository, pushed to another one.
export GIT_AUTHOR_NAME=Me GIT_AUTHOR_EMAIL=me@localhost GIT_COMMITTER_NAME=Me GIT_COMMITTER_EMAIL=me@localhost
git init -q -b main repository
cd repository
printf '*.bin filter=lfs diff=lfs merge=lfs -text\n' > .gitattributes
head -c 100000 /dev/urandom > large.bin
git add .
git -c filter.lfs.clean='git-lfs clean -- %f' -c filter.lfs.smudge='git-lfs smudge -- %f' \
    -c filter.lfs.required=true add large.bin
git -c filter.lfs.clean='git-lfs clean -- %f' commit -q -m large
git lfs ls-files
git lfs fsck || :
