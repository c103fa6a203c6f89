# A repository that is made without git's own programs: copied, unpacked, or written by hand as libgit2 does.
git init -q original
cp -r original copied
git -C copied status --short
tar -cf original.tar original
mkdir unpacked
tar -C unpacked -xf original.tar
git -C unpacked/original status --short
mkdir -p byhand/.git/objects/info byhand/.git/objects/pack byhand/.git/refs/heads byhand/.git/refs/tags
echo 'ref: refs/heads/main' > byhand/.git/HEAD
printf '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n' > byhand/.git/config.lock
mv byhand/.git/config.lock byhand/.git/config
printf '[core]\n\tlogallrefupdates = true\n' >> byhand/.git/config
git -C byhand status --short
git -C byhand config branch.sort -committerdate
