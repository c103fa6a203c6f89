# yarn, run by npx.
npm init --yes > log
npx --yes yarn@1 add express > log
node -e 'require("express")()'
