# A program that is fetched to be run once.
npx --yes semver 1.2.3 > log
grep -q 1.2.3 log
npx --yes cowsay hello > log
