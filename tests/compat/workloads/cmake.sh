# A small C program, configured, built with two jobs, tested and installed.
mkdir source
cat > source/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.10)
project(sample C)
enable_testing()
add_library(part STATIC part.c)
add_executable(sample main.c)
target_link_libraries(sample part)
add_test(NAME runs COMMAND sample)
install(TARGETS sample DESTINATION bin)
EOF
echo 'int part(void) { return 0; }' > source/part.c
printf 'int part(void);\nint main(void) { return part(); }\n' > source/main.c
cmake -S source -B build > log
cmake --build build -j 2 >> log
(cd build && ctest --output-on-failure >> ../log)
cmake --install build --prefix installed >> log
installed/bin/sample
