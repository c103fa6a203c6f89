# A repository that a group shares has directories with the set-group-id bit.
git init -q --bare --shared=group shared.git
test -g shared.git/objects
mkdir -m 2775 group
test -g group
git clone -q shared.git clone 2>/dev/null
cp -a shared.git copied.git
test -g copied.git/objects
