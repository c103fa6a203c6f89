# A module with a package of its own, built, tested and vetted without a proxy.
export GOPATH="$PWD/gopath" GOCACHE="$PWD/gocache" GOFLAGS=-mod=mod GOPROXY=off
mkdir -p module/part
cd module
go mod init example.test/module 2> ../log
printf 'package part\n\nfunc Sum(a, b int) int { return a + b }\n' > part/part.go
printf 'package part\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n' \
    > part/part_test.go
printf 'package main\n\nimport (\n\t"fmt"\n\n\t"example.test/module/part"\n)\n\nfunc main() { fmt.Println(part.Sum(40, 2)) }\n' \
    > main.go
go build -o ../program .
test "$(../program)" = 42
go test ./... > ../log
go vet ./...
