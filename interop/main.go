// Command interop shows what go-pfcp makes of messages, and makes messages of its own.
//
// It reads lines: a message in hexadecimal is parsed and answered with a line of JSON; "build" is
// answered with a line for each message that it can build, and an empty one.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

// element is what go-pfcp says of one element.
type element struct {
	Type uint16 `json:"type"`
	// Values are what its getters return.
	Values []string `json:"values"`
	// Elements are those of a group.
	Elements []element `json:"ies,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// answer is what go-pfcp says of one message.
type answer struct {
	Name     string    `json:"name"`
	SEID     uint64    `json:"seid"`
	Sequence uint32    `json:"sequence"`
	Elements []element `json:"ies"`
	// Again is the message that marshalling what was parsed gives.
	Again string `json:"again"`
	Error string `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if lines.Text() == "build" {
			for _, one := range built() {
				write(out, one)
			}
			fmt.Println()
			continue
		}
		write(out, parsed(lines.Text()))
	}
}

func write(out *json.Encoder, value any) {
	if err := out.Encode(value); err != nil {
		panic(err)
	}
}

func parsed(text string) (said answer) {
	defer func() {
		if reason := recover(); reason != nil {
			said.Error = fmt.Sprint("panic: ", reason)
		}
	}()
	octets, err := hex.DecodeString(text)
	if err != nil {
		return answer{Error: err.Error()}
	}
	parsed, err := message.Parse(octets)
	if err != nil {
		return answer{Error: err.Error()}
	}
	again := make([]byte, parsed.MarshalLen())
	if err := parsed.MarshalTo(again); err != nil {
		return answer{Error: err.Error()}
	}
	header, err := message.ParseHeader(octets)
	if err != nil {
		return answer{Error: err.Error()}
	}
	elements, err := ie.ParseMultiIEs(header.Payload)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{
		Name:     parsed.MessageTypeName(),
		SEID:     parsed.SEID(),
		Sequence: parsed.Sequence(),
		Elements: described(elements),
		Again:    hex.EncodeToString(again),
	}
}

func described(elements []*ie.IE) []element {
	said := []element{}
	for _, one := range elements {
		if one.IsGrouped() {
			said = append(said, element{Type: one.Type, Elements: described(one.ChildIEs)})
		} else {
			values, err := read(one)
			said = append(said, element{Type: one.Type, Values: values, Error: err})
		}
	}
	return said
}
