# Packages from local archives, with a script of their own, a link into bin, and many files.
for name in first second third; do
    mkdir -p "$name/lib"
    printf '{"name":"%s","version":"1.0.0","main":"index.js","bin":{"%s-tool":"tool.js"},"scripts":{"postinstall":"node -e 0"}}' \
        "$name" "$name" > "$name/package.json"
    printf 'module.exports = "%s";\n' "$name" > "$name/index.js"
    printf '#!/usr/bin/env node\nconsole.log(require("./index.js"));\n' > "$name/tool.js"
    number=0
    while [ "$number" -lt 60 ]; do
        mkdir -p "$name/lib/d$((number % 15))"
        echo "$number" > "$name/lib/d$((number % 15))/f$number.js"
        number=$((number + 1))
    done
    (cd "$name" && npm pack --silent --offline --pack-destination .. > ../log)
done
mkdir application
cd application
npm init --yes > ../log
npm install --offline --no-audit --no-fund ../first-1.0.0.tgz ../second-1.0.0.tgz ../third-1.0.0.tgz > ../log
test "$(node -p 'require("first") + require("second") + require("third")')" = firstsecondthird
test "$(npm exec --offline --no -- first-tool)" = first
rm -rf node_modules
npm ci --offline --no-audit --no-fund > ../log
npm ls > ../log
