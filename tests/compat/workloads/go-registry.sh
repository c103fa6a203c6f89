# A module with a dependency from the proxy that go is set up to use.
mkdir module
cd module
go mod init example.test/module 2> ../log
printf 'package main\n\nimport (\n\t"fmt"\n\n\t"rsc.io/quote"\n)\n\nfunc main() { fmt.Println(quote.Hello()) }\n' > main.go
go mod tidy 2> ../log
go run .
