# Packing, unpacking and copying trees, with modes, links and times.
umask 022
mkdir -p tree/a/b tree/shared
chmod 2775 tree/shared
echo one > tree/a/one
ln -s one tree/a/link
ln tree/a/one tree/a/b/hard
touch -d '2001-02-03 04:05:06' tree/a/one
mkfifo tree/fifo
tar -cf tree.tar tree
mkdir out
tar -C out -xpf tree.tar
test "$(stat -c %Y out/tree/a/one)" = "$(stat -c %Y tree/a/one)"
test "$(stat -c %a out/tree/shared)" = 2775
cp -a tree copy
diff -r --no-dereference tree/a copy/a
test "$(stat -c %a copy/shared)" = 2775
zip -qr tree.zip tree/a
unzip -q tree.zip -d unzipped
cmp tree/a/one unzipped/tree/a/one
install -d -m 0750 installed
install -m 0644 tree/a/one installed/one
find tree -type f -exec sha256sum {} + > sums
sha256sum --quiet -c sums
