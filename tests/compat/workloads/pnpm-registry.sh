# pnpm, run by npx, with a store of its own.
npm init --yes > log
npx --yes pnpm@9 install --store-dir "$PWD/store" express > log
node -e 'require("express")()'
