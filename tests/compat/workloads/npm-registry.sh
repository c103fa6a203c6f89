# A package with many dependencies.
npm init --yes > log
npm install --no-audit --no-fund express > log
node -e 'require("express")()'
