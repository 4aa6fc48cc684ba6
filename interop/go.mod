module strowger/interop

go 1.25

require github.com/wmnsk/go-pfcp v0.0.24
